from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
def bad(**_):
    note("bad")
    raise kopf.PermanentError("no")


@kopf.on.create(*EX)
def good(**_):
    note("good")
