from crosslib import note

import kopf

STEPS = [
    ["create", "one", {"spec": {"a": 1}}],
    ["patch", "one", {"spec": {"a": 2}}],
    ["delete", "one"],
]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.event(*EX)
def fn(type, event, body, **_):
    note("event", type, event["type"], body["spec"])
