"""Deletion that nobody has to wait for: as in `cross_check/sets.rs`."""

import kopf

from cross_check_common import KIND, note


@kopf.on.create(*KIND)
def made(retry, reason, **_):
    note("made", retry, reason)


@kopf.on.delete(*KIND, optional=True)
def gone(retry, reason, **_):
    note("gone", retry, reason)


@kopf.daemon(*KIND, labels={"background": "yes"})
async def holding(stopped, **_):
    while not stopped:
        await stopped.wait(60)
