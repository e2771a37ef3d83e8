from crosslib import note

import kopf

STEPS = [
    ["create", "one", {"spec": {"a": 1}}],
    ["patch", "one", {"spec": {"a": 2, "b": None}}],
    ["delete", "one"],
]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
def create(**_):
    note("create")


@kopf.on.update(*EX)
def update(diff, old, new, **_):
    note("update", diff, old, new)


@kopf.on.delete(*EX)
def delete(reason, **_):
    note("delete", reason)
