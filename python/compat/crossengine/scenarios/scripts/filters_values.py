from crosslib import note

import kopf

STEPS = [
    ["create", "one", {"spec": {"a": 1}}],
    ["patch", "one", {"spec": {"a": 2}}],
    ["patch", "one", {"spec": {"a": 3}}],
    ["patch", "one", {"spec": {"a": None}}],
]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.update(*EX, field="spec.a", old=1, new=2)
def exact(old, new, **_):
    note("exact", old, new)


@kopf.on.field(*EX, field="spec.a", new=kopf.ABSENT)
def gone(old, new, **_):
    note("gone", old, new)


@kopf.on.update(*EX, field="spec.a", value=lambda value, **_: value == 3)
def value(old, new, **_):
    note("value", old, new)
