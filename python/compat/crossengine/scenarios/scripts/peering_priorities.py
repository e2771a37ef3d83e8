import os

from crosslib import note

import kopf

OPERATORS = {
    "low": ["-A", "--peering=crossed", "--priority=1"],
    "high": ["-A", "--peering=crossed", "--priority=100"],
}
STEPS = [
    ["create", "one", {"spec": {"a": 1}}],
    ["start", "high"],
    ["sleep", 2],
    ["create", "two", {"spec": {"a": 1}}],
    ["stop", "high"],
    ["sleep", 2],
    ["create", "three", {"spec": {"a": 1}}],
]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
def create(name, **_):
    note(os.environ["CROSS_NAME"], name)
