"""Daemons and timers as operators write them: loops, live bodies, restarts by filters."""

import asyncio

from crosslib import note

import kopf

# Daemons end sooner here, which takes one turn and one line of debug more.
DIFFERS = ["lines"]
STEPS = [
    ("create", "one", {"spec": {"run": True, "n": 1}}),
    ("patch", "one", {"spec": {"n": 2}}),
    ("patch", "one", {"spec": {"run": False}}),
    ("patch", "one", {"spec": {"run": True}}),
    ("delete", "one"),
]
RACES = True


@kopf.on.startup()
def configure(settings, **_):
    settings.background.cancellation_polling = 0.3


def runs(spec, **_):
    return bool(spec.get("run"))


@kopf.daemon("kopfexamples", when=runs, cancellation_backoff=0.2, cancellation_timeout=0.5)
async def watch(stopped, spec, name, memo, **_):
    seen = None
    note("daemon begins", spec["n"])
    while not await stopped.wait(0.05):
        if spec["n"] != seen:
            seen = spec["n"]
            note("daemon sees", seen)
    note("daemon ends", str(stopped.reason) if "FILTERS" in str(stopped.reason) else "")


@kopf.daemon("kopfexamples", initial_delay=0.1)
def in_thread(stopped, body, **_):
    note("thread begins", bool(stopped), body["spec"]["n"])
    note("thread stops", bool(stopped.wait(60)), stopped.is_set())


@kopf.daemon("kopfexamples", retries=2, backoff=0.1)
async def failing(retry, **_):
    note("failing", retry)
    raise kopf.TemporaryError("again", delay=0.1)


@kopf.timer("kopfexamples", interval=60, initial_delay=0.1)
async def tick(memo, patch, retry, **_):
    memo.ticks = memo.get("ticks", 0) + 1
    if memo.ticks:
        note("tick", retry)
        patch.status["ticks"] = memo.ticks
        await asyncio.sleep(0)
