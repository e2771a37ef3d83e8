from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}], ["delete", "one"]]
# Kopf waits for the next check of the daemon before it releases the object.
DIFFERS = ["objects", "lines"]
EX = ("kopf.dev", "v1", "kopfexamples")

import asyncio


@kopf.daemon(*EX, cancellation_timeout=2)
async def fn(**_):
    note("started")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        note("cancelled")
        await asyncio.sleep(0.3)
        note("ended")
        raise
