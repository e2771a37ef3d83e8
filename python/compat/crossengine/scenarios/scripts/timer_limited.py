from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}], ["delete", "one"]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.timer(*EX, interval=30, initial_delay=0.2)
async def fn(patch, retry, **_):
    note("timer", retry)
    return {"ticks": 1}
