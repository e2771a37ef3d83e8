"""Daemons and timers that exit slowly, beside handlers of the deletion."""

import asyncio

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
RACES = True
STEPS = [("create", "one", {"spec": {}}), ("delete", "one"), ("sleep", "1")]
# Kopf calls the handlers of the deletion again with every check of the daemon.
DIFFERS = ["calls", "lines"]


@kopf.on.startup()
def configure(settings, **_):
    settings.background.cancellation_polling = 0.4


@kopf.daemon(*EX)
async def slow(stopped, name, **_):
    await stopped.wait()
    await asyncio.sleep(1)
    note("slow", name)


@kopf.on.delete(*EX)
def delete(retry, name, **_):
    note("delete", name, retry)
    if retry == 0:
        raise kopf.TemporaryError("not yet", delay=0.3)


@kopf.on.delete(*EX, optional=True)
async def optional(name, **_):
    note("optional", name)
