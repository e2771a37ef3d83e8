from crosslib import note

import kopf

STEPS = []
FAILS = True
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.startup()
def start(**_):
    note("startup")
    raise kopf.PermanentError("no way")
