"""Daemons of objects that stop matching, and match again while the daemons still exit."""

import asyncio

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
STEPS = [
    ("create", "one", {"metadata": {"labels": {"on": "yes"}}, "spec": {"n": 1}}),
    ("patch", "one", {"metadata": {"labels": {"on": None}}}),
    ("patch", "one", {"metadata": {"labels": {"on": "yes"}}}),
    ("patch", "one", {"metadata": {"labels": {"on": "no"}}}),
    ("delete", "one"),
]


@kopf.on.startup()
def configure(settings, **_):
    settings.background.cancellation_polling = 0.3


@kopf.daemon(*EX, labels={"on": "yes"})
async def slow(stopped, labels, **_):
    note("begins", dict(labels))
    await stopped.wait()
    await asyncio.sleep(0.8)
    note("ends", str(stopped.reason))
