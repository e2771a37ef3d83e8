"""Handlers for created, changed and deleted objects, and the exact changes."""

import kopf


@kopf.on.create("kopf.dev", "v1", "bookcases")
def created(spec, logger, **_):
    logger.info(f"A new bookcase with {len(spec.get('books', []))} books.")


@kopf.on.update("kopf.dev", "v1", "bookcases")
def changed(diff, logger, **_):
    for operation, field, old, new in diff:
        logger.info(f"{'.'.join(field)}: {operation} {old!r} -> {new!r}")


@kopf.on.field("kopf.dev", "v1", "bookcases", field="spec.place")
def moved(old, new, logger, **_):
    if old is not None:
        logger.info(f"Moved from {old} to {new}.")


@kopf.on.delete("kopf.dev", "v1", "bookcases")
def deleted(logger, **_):
    logger.info("The books are given away; the bookcase can go.")
