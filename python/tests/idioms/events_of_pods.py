"""Built-in resources and everything: raw events, filters by callbacks, patches of other objects."""

import kopf


def is_ours(meta, **_):
    return meta.get("labels", {}).get("managed") == "yes"


@kopf.on.event("v1", "configmaps", when=kopf.all_([is_ours, lambda type, **_: type != "DELETED"]))
def seen(event, body, patch, type, **_):
    if "seen" not in body.metadata.annotations:
        patch.metadata.annotations["seen"] = str(type)
        patch["data"] = {**body.get("data", {}), "extra": "1"}


@kopf.on.event(kopf.EVERYTHING, labels={"counted": "yes"})
async def count(resource, logger, name, **_):
    logger.info(f"note: {resource.plural} {name}")


@kopf.on.create("volumes", annotations={"mode": lambda value, **_: value in ("a", "b")})
def chosen(annotations, body, **_):
    kopf.info(body, reason="Chosen", message=f"in the mode {annotations['mode']}")
    kopf.event(dict(body), type="Custom", reason="Custom", message="by hand")
    return annotations["mode"]


@kopf.on.create("volumes", field="spec.mode", value=kopf.PRESENT)
def by_value(spec, new, **_):
    assert new == spec["mode"]
    return new
