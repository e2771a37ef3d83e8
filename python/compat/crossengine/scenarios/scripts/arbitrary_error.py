from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX, backoff=0.3)
def fn(retry, **_):
    note("fn", retry)
    if retry < 1:
        raise ValueError("boom")
