from crosslib import note

import kopf

STEPS = []
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.startup(backoff=0.2)
def start(retry, **_):
    note("startup", retry)
    if retry < 2:
        raise Exception("boom")
