from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}], ["delete", "one"]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.daemon(*EX, backoff=0.3)
async def fn(retry, stopped, **_):
    note("run", retry)
    if retry < 2:
        raise Exception("again")
    await stopped.wait()
