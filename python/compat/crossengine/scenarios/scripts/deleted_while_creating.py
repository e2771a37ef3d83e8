from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}], ["delete", "one"]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
def create(retry, **_):
    note("create", retry)
    raise kopf.TemporaryError("x", delay=30)


@kopf.on.delete(*EX)
def delete(**_):
    note("delete")
