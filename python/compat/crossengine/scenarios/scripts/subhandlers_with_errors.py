from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"items": ["a", "b"]}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
async def parent(spec, **_):
    for item in spec["items"]:

        @kopf.subhandler(id=item, backoff=0.3)
        async def sub(retry, item=item, **_):
            note("sub", item, retry)
            if item == "a" and retry < 2:
                raise Exception("again")
            return retry
