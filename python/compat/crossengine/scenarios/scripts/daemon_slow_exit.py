"""Daemons that need a while to exit when their object is deleted."""

import asyncio
import time

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
RACES = True
STEPS = [
    ("create", "one", {"spec": {}}),
    ("delete", "one"),
    ("create", "two", {"spec": {}}),
    ("delete", "two"),
]


@kopf.on.startup()
def configure(settings, **_):
    settings.background.cancellation_polling = 0.4


@kopf.daemon(*EX)
def thread(stopped, name, **_):
    stopped.wait()
    time.sleep(1)
    note("thread", name, str(stopped.reason))


@kopf.daemon(*EX, cancellation_polling=0.6)
async def coroutine(stopped, name, **_):
    await stopped.wait()
    await asyncio.sleep(0.7)
    note("coroutine", name)
    return {"ended": True}


@kopf.daemon(*EX)
async def quick(stopped, name, **_):
    await stopped.wait()
    note("quick", name)
