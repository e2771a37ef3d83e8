"""Every combination of cancellation options with daemons that do not exit when asked."""

import asyncio
import time

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
RACES = True
STEPS = [("create", "one", {"spec": {}}), ("delete", "one"), ("sleep", "2")]


async def stubborn(title, name, rest):
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        note(title, "cancelled", name)
        await asyncio.sleep(rest)
        note(title, "ended", name)
        raise


@kopf.daemon(*EX, cancellation_timeout=1)
async def timeout_only(name, **_):
    await stubborn("timeout", name, 0.3)


@kopf.daemon(*EX, cancellation_backoff=0.4, cancellation_timeout=1)
async def both(name, **_):
    await stubborn("both", name, 0.2)


@kopf.daemon(*EX, cancellation_backoff=0.4, cancellation_timeout=0.3)
def thread(stopped, name, **_):
    stopped.wait()
    note("thread", "asked", name)
    time.sleep(2)
    note("thread", "ended", name)


@kopf.daemon(*EX, cancellation_backoff=0.3, cancellation_polling=0.3)
async def backoff_only(stopped, name, **_):
    await stopped.wait()
    note("backoff", str(stopped.reason), name)
    await asyncio.sleep(0.8)
    note("backoff", str(stopped.reason), name)
