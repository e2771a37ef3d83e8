from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX, retries=3, backoff=0.2)
def fn(retry, **_):
    note("fn", retry)
    raise ValueError("boom")
