from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
def a(retry, **_):
    note("a", retry)
    if not retry:
        raise kopf.TemporaryError("x", delay=0.3)


@kopf.on.create(*EX)
def b(retry, **_):
    note("b", retry)
