from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}], ["delete", "one"]]
# Kopf releases the object twice.
DIFFERS = ["lines"]
EX = ("kopf.dev", "v1", "kopfexamples")

import asyncio


@kopf.daemon(*EX, cancellation_backoff=0.5, cancellation_timeout=2)
async def fn(stopped, **_):
    await stopped.wait()
    note("stopped", stopped.reason)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        note("cancelled", stopped.reason)
        raise
