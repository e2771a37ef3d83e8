from crosslib import note

import kopf

STEPS = [
    ["create", "one", {"spec": {"on": True}}],
    ["patch", "one", {"spec": {"on": False}}],
    ["patch", "one", {"spec": {"on": True}}],
    ["delete", "one"],
]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.daemon(*EX, field="spec.on", value=True)
async def fn(stopped, **_):
    note("started")
    await stopped.wait()
    note("stopped", stopped.reason)
