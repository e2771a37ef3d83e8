from crosslib import note

import kopf

STEPS = [
    ["create", "one", {"spec": {"items": ["a", "b", "c"]}}],
    ["patch", "one", {"spec": {"items": ["a", "d"]}}],
]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
@kopf.on.update(*EX)
def parent(spec, **_):
    note("parent")
    for item in spec["items"]:

        @kopf.subhandler(id=item)
        def sub(retry, item=item, **_):
            note("sub", item, retry)
            return item
