from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}], ["delete", "one"]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.delete(*EX, optional=True)
def fn(**_):
    note("delete")
