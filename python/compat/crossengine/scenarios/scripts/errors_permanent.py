from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX, errors=kopf.ErrorsMode.PERMANENT)
def fn(retry, **_):
    note("fn", retry)
    raise ValueError("boom")
