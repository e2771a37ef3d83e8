"""Settings: printed, replaced as a whole, changed at run time by a handler; unknown ones."""

import dataclasses
import logging

from crosslib import note

import kopf

STEPS = [("create", "one", {"spec": {}}), ("create", "two", {"spec": {}}), ("delete", "one")]


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    note("fields", [field.name for field in dataclasses.fields(settings)])
    for name in ("watching", "batching", "scanning", "posting", "persistence", "background"):
        value = getattr(settings, name)
        known = dataclasses.asdict(value) if name not in ("persistence", "posting") else {}
        note(name, {key: str(item) for key, item in known.items()})
    note("text", str(settings.watching), repr(settings.posting).split("loggers")[0])
    settings.posting = dataclasses.replace(settings.posting, enabled=True, level=logging.WARNING)
    settings.execution.max_workers = 7
    settings.persistence.finalizer = "first.dev/finalizer"
    settings.watching.connect_timeout = 5
    settings.networking.request_timeout = 30
    settings.custom = "anything"


@kopf.on.create("kopfexamples")
def create(settings, name, logger, **_):
    note("settings", name, settings.custom, settings.execution.max_workers)
    logger.warning("this is posted")
    logger.info("this is not")
    settings.posting.level = logging.ERROR


@kopf.on.delete("kopfexamples")
def delete(**_):
    note("deleted")
