from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
def first(spec, retry, **_):
    note("first", dict(spec), retry)
    return {"x": 1}


@kopf.on.create(*EX)
async def second(diff, old, new, reason, **_):
    note("second", diff, old, new, reason)
    return "text"
