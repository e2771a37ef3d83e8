"""Settings of operators that never give up: delays without an end, and a filter of the log."""

import logging
import random

from crosslib import note

import kopf

STEPS = [
    ("create", "one", {"spec": {"field": 1}}),
    ("patch", "one", {"spec": {"field": 2}}),
]


class RelativeDelays:
    def __init__(self, first=0.1, factor=2, maximum=60):
        self.first, self.factor, self.maximum = first, factor, maximum

    def __iter__(self):
        delay = self.first
        while True:
            yield min(delay, self.maximum)
            delay *= self.factor


class RandomDelays:
    def __iter__(self):
        while True:
            yield 10 + random.randint(-5, 5)


def without_successes(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    return not (text.startswith("Handler ") and text.endswith(" succeeded."))


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, **_):
    settings.networking.error_backoffs = RelativeDelays()
    settings.queueing.error_delays = RandomDelays()
    settings.persistence.diffbase_storage = kopf.StatusDiffBaseStorage(field="status.diffBase")
    settings.persistence.progress_storage = kopf.StatusProgressStorage(field="status.kopf.progress")
    settings.persistence.finalizer = "operator.example.dev"
    settings.posting.level = logging.WARNING
    settings.scanning.disabled = True
    settings.watching.session_timeout = 60  # a name that Kopf does not have any more
    logging.getLogger("kopf.objects").addFilter(without_successes)


@kopf.on.create("kopf.dev", "v1", "kopfexamples")
@kopf.on.update("kopf.dev", "v1", "kopfexamples")
async def changed(reason, retry, logger, **_):
    note("changed", reason, retry)
    logger.warning("note: %s", reason)
    if not retry:
        raise kopf.TemporaryError("not yet", delay=1.5)
