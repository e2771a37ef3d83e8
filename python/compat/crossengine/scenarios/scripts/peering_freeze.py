from crosslib import note

import kopf

OPERATORS = {"main": ["-A", "--peering=crossed", "--priority=1"]}
STEPS = [
    ["create", "one", {"spec": {"a": 1}}],
    ["kopf", ["freeze", "-A", "--peering=crossed", "-p", "200", "-t", "300", "-i", "me"]],
    ["sleep", 2],
    ["create", "two", {"spec": {"a": 1}}],
    ["patch", "one", {"spec": {"a": 2}}],
    ["kopf", ["resume", "-A", "--peering=crossed", "-i", "me"]],
    ["sleep", 2],
    ["patch", "two", {"spec": {"a": 3}}],
]
RACES = True
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
@kopf.on.update(*EX)
def fn(name, reason, spec, **_):
    note(name, str(reason), spec["a"])


@kopf.timer(*EX, interval=1000)
def tick(name, **_):
    note("tick", name)
