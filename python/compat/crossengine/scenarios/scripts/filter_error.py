from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
# Kopf does not look at the object again before its next change.
DIFFERS = ["objects", "calls", "lines"]
EX = ("kopf.dev", "v1", "kopfexamples")

count = 0


def when(**_):
    global count
    count += 1
    if count == 1:
        raise KeyError("oops")
    return True


@kopf.on.create(*EX, when=when)
def fn(**_):
    note("fn")
