from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX, timeout=1.5, backoff=1)
def fn(retry, **_):
    note("fn", retry)
    raise ValueError("boom")
