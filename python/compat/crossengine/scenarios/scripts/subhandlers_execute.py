from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


async def sub1(**_):
    note("sub1")
    return 1


async def sub2(**_):
    note("sub2")
    return 2


@kopf.on.create(*EX)
async def parent(**_):
    await kopf.execute(fns={"x": sub1, "y": sub2})
    note("parent done")
    return "done"
