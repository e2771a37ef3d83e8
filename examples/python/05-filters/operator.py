"""Filters: which objects and which changes a handler is called for."""

import kopf


def is_big(value, **_):
    return value is not None and value > 100


@kopf.on.create("kopf.dev", "v1", "parcels", field="spec.weight", value=is_big)
def big(name, logger, **_):
    logger.info(f"{name} needs a truck.")


@kopf.on.create("kopf.dev", "v1", "parcels", labels={"fragile": kopf.PRESENT})
def fragile(name, logger, **_):
    logger.info(f"{name} needs care.")


@kopf.on.create("kopf.dev", "v1", "parcels", when=kopf.not_(lambda spec, **_: "weight" in spec))
def unknown(name, logger, **_):
    logger.info(f"{name} needs a scale.")


@kopf.on.update("kopf.dev", "v1", "parcels", field="spec.state", old="sent", new="received")
def received(name, logger, **_):
    logger.info(f"{name} has arrived.")
