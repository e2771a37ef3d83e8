"""A function that is called repeatedly as long as its object exists."""

import kopf


@kopf.timer("kopf.dev", "v1", "plants", interval=0.5, sharp=True)
def grow(status, patch, **_):
    patch.status["height"] = status.get("height", 0) + 1


@kopf.timer("kopf.dev", "v1", "plants", idle=0.5, interval=1)
async def water(name, logger, **_):
    logger.info(f"Nobody has touched {name} for a while: watering.")
