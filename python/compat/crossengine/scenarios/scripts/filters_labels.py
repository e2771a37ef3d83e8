from crosslib import note

import kopf

STEPS = [
    ["create", "one", {"metadata": {"labels": {"a": "b"}}}],
    ["create", "two", {"metadata": {"labels": {"a": "c"}}}],
    ["create", "three", {}],
]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX, labels={"a": "b"})
def equal(name, **_):
    note("equal", name)


@kopf.on.create(*EX, labels={"a": kopf.PRESENT})
def present(name, **_):
    note("present", name)


@kopf.on.create(*EX, labels={"a": kopf.ABSENT})
def absent(name, **_):
    note("absent", name)


@kopf.on.create(*EX, labels={"a": lambda value, **_: value == "c"})
def callback(name, **_):
    note("callback", name)
