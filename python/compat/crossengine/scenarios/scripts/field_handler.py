from crosslib import note

import kopf

STEPS = [
    ["create", "one", {"spec": {"a": 1}}],
    ["patch", "one", {"spec": {"a": {"b": 1}}}],
    ["patch", "one", {"spec": {"c": 1}}],
    ["patch", "one", {"spec": {"a": None}}],
]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.field(*EX, field="spec.a")
def field(diff, old, new, reason, **_):
    note("field", diff, old, new, reason)
