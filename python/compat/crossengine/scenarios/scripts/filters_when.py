from crosslib import note

import kopf

STEPS = [
    ["create", "one", {"spec": {"a": 1}}],
    ["create", "two", {"spec": {"a": 2}}],
    ["patch", "two", {"spec": {"a": 1}}],
]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX, when=lambda spec, **_: spec["a"] == 1)
def create(name, **_):
    note("create", name)


@kopf.on.update(
    *EX, when=kopf.all_([lambda spec, **_: spec["a"] == 1, lambda diff, **_: bool(diff)])
)
def update(name, **_):
    note("update", name)
