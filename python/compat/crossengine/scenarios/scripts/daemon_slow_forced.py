"""Somebody removes all finalizers while a daemon still exits; another finalizer holds an object."""

import asyncio

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
STEPS = [
    ("create", "one", {"spec": {}}),
    ("delete", "one"),
    ("patch", "one", {"metadata": {"finalizers": None}}),
    ("create", "two", {"metadata": {"finalizers": ["other.dev/hold"]}, "spec": {"quick": True}}),
    ("delete", "two"),
    ("patch", "two", {"metadata": {"annotations": {"noise": "1"}}}),
    ("patch", "two", {"metadata": {"finalizers": None}}),
]


@kopf.daemon(*EX)
async def slow(stopped, spec, name, **_):
    await stopped.wait()
    if not spec.get("quick"):
        await asyncio.sleep(3)
    note("ends", name)


@kopf.timer(*EX, interval=3600)
def tick(name, **_):
    note("tick", name)


@kopf.on.update(*EX)
def update(name, **_):
    note("update", name)
