"""A background task that runs as long as its object exists: async, or in a thread."""

import asyncio

import kopf


@kopf.daemon("kopf.dev", "v1", "clocks", cancellation_timeout=5)
async def tick(spec, logger, **_):
    try:
        while True:
            logger.info(f"Tick at {spec['place']}.")
            await asyncio.sleep(spec.get("interval", 1))
    except asyncio.CancelledError:
        logger.info("The clock is stopped.")
        raise


@kopf.daemon("kopf.dev", "v1", "clocks", cancellation_timeout=5)
def watch(stopped, logger, **_):
    while not stopped:
        stopped.wait(0.2)
    logger.info(f"The watchman goes home: {stopped.reason}")


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.background.cancellation_polling = 1
