from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}], ["delete", "one"]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.daemon(*EX)
async def fn(stopped, **_):
    note("started")
    await stopped.wait()
    note("stopped", stopped.reason)
