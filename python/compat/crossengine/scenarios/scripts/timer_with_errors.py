from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.timer(*EX, interval=30, backoff=0.2)
async def fn(retry, **_):
    note("timer", retry)
    if retry < 2:
        raise Exception("boom")
