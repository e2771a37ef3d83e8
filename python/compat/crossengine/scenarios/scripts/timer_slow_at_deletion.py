"""Timers whose function runs when the deletion comes, beside idle and sharp timers."""

import asyncio
import time

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
RACES = True
STEPS = [
    ("create", "one", {"spec": {"slow": 3}}),
    ("delete", "one"),
    ("create", "two", {"spec": {"slow": 0}}),
    ("delete", "two"),
]


@kopf.on.startup()
def configure(settings, **_):
    settings.background.cancellation_polling = 0.5


@kopf.timer(*EX, interval=3600)
def thread(spec, name, patch, **_):
    note("thread", name)
    time.sleep(spec["slow"])
    patch.metadata.annotations["late"] = "yes"
    note("thread ends", name)


@kopf.timer(*EX, interval=3600, sharp=True, initial_delay=lambda **_: 0.1)
async def coroutine(spec, name, **_):
    note("coroutine", name)
    await asyncio.sleep(spec["slow"])
    note("coroutine ends", name)


@kopf.timer(*EX, idle=3600)
def idle(name, **_):
    note("never", name)
