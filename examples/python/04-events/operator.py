"""Raw events of pods, and Kubernetes events, which ``kubectl describe`` shows."""

import kopf


@kopf.on.event("pods", labels={"watched": "yes"})
def seen(type, name, logger, **_):
    logger.info(f"{type or 'LISTED'}: {name}")


@kopf.on.create("pods", labels={"watched": "yes"})
async def noted(body, **_):
    kopf.info(body, reason="Noted", message="The operator has seen this pod.")
