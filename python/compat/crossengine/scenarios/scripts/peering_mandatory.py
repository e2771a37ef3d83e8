from crosslib import note

import kopf

OPERATORS = {"main": ["-n", "default", "--peering=crossed", "--priority=5"]}
STEPS = [
    ["create", "one", {"spec": {"a": 1}}],
    ["kopf", ["freeze", "-n", "default", "--peering=crossed", "-p", "5", "-t", "300", "-i", "me"]],
    ["sleep", 2],
    ["create", "two", {"spec": {"a": 1}}],
    ["kopf", ["resume", "-n", "default", "--peering=crossed", "-i", "me"]],
    ["sleep", 2],
]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
def fn(name, **_):
    note(name)
