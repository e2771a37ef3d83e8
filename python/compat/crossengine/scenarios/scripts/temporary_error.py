from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
def fn(retry, **_):
    note("fn", retry)
    if retry < 2:
        raise kopf.TemporaryError("not yet", delay=0.3)
