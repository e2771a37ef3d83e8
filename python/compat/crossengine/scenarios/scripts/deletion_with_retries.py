from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}], ["delete", "one"]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.delete(*EX)
def fn(retry, **_):
    note("delete", retry)
    if retry < 1:
        raise kopf.TemporaryError("wait", delay=0.3)
