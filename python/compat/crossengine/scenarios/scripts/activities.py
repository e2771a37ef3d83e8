from crosslib import note

import kopf

STEPS = []
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.startup()
def start(memo, **kwargs):
    note("startup", sorted(kwargs))
    memo.x = 1


@kopf.on.cleanup()
async def clean(memo, **kwargs):
    note("cleanup", memo.x, sorted(kwargs))
