from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}], ["restart"], ["patch", "one", {"spec": {"a": 2}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.resume(*EX)
def resume(reason, **_):
    note("resume", reason)


@kopf.on.create(*EX)
@kopf.on.resume(*EX)
def both(reason, **_):
    note("both", reason)
