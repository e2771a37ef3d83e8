from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}], ["patch", "one", {"spec": {"a": 2}}]]
# Kopf touches the object to wake itself up.
DIFFERS = ["objects"]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
def create(retry, spec, **_):
    note("create", retry, spec["a"])
    if spec["a"] == 1:
        raise kopf.TemporaryError("x", delay=30)


@kopf.on.update(*EX)
def update(**_):
    note("update")
