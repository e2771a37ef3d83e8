from crosslib import note

import kopf

STEPS = [
    ["create", "one", {"spec": {"a": 1}}],
    ["patch", "one", {"spec": {"a": 2}}],
    ["delete", "one"],
]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.daemon(*EX)
async def fn(patch, **_):
    note("run")
    patch.status["ran"] = True
    return "result"
