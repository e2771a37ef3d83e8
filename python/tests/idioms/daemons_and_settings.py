"""Daemons that watch something outside, a probe, settings that are replaced at run time."""

import asyncio
import dataclasses
import logging

import kopf

logging.getLogger("aiohttp").setLevel(logging.WARNING)


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.posting.level = logging.WARNING
    settings.watching.server_timeout = 60
    settings.background.cancellation_polling = 1
    settings.queueing = dataclasses.replace(settings.queueing, worker_limit=5)
    settings.execution = dataclasses.replace(settings.execution, default_backoff=0.1)
    settings.networking.error_backoffs = [0.1, 0.2, 0.3]


@kopf.on.probe(id="now")
def probe(**_):
    return "alive"


@kopf.on.create("volumes", backoff=0.1, retries=3)
def fails_once(retry, **_):
    if not retry:
        raise RuntimeError("the first attempt fails")
    return retry


@kopf.daemon("volumes", initial_delay=0.1, labels={"watched": "yes"})
def in_a_thread(stopped: kopf.DaemonStopped, body, patch, **_):
    while not stopped:
        patch.status["size"] = body["spec"].get("size")
        break
    stopped.wait(1000)


@kopf.daemon("volumes", cancellation_backoff=1, cancellation_timeout=1)
async def in_the_loop(name, logger, **_):
    try:
        while True:
            await asyncio.sleep(1000)
    except asyncio.CancelledError:
        logger.info("note: we are cancelled")
        raise


@kopf.timer("volumes", interval=0.2, sharp=True, idle=0.1)
async def tick(memo, patch, **_):
    memo.ticks = memo.get("ticks", 0) + 1
    if memo.ticks == 3:
        patch.status["ticks"] = memo.ticks
