"""Progress in the status, by a class of the operator, which outlives a restart of the operator."""

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
STEPS = [
    ("create", "one", {"spec": {"a": 1}}),
    ("restart",),
    ("sleep", "7"),
    ("patch", "one", {"spec": {"a": 2}}),
]


class Own(kopf.StatusProgressStorage):
    """A storage whose methods are called."""


@kopf.on.startup()
def configure(settings, **_):
    # Kopf touches objects to wake itself up, and leaves a trace outside of this field.
    touch = "status.progress.touched"
    settings.persistence.progress_storage = Own(
        field="status.progress.{name}", touch_field=touch
    )


@kopf.on.create(*EX)
def created(retry, **_):
    note("created", retry)
    if retry < 1:
        raise kopf.TemporaryError("not yet", delay=5)
    return {"retries": retry}


@kopf.on.create(*EX)
@kopf.on.update(*EX)
def done(reason, retry, diff, **_):
    note("done", reason, retry, [list(item) for item in diff])


@kopf.on.create(*EX)
def outer(**_):
    @kopf.subhandler(id="quick")
    def quick(**_):
        note("quick")

    @kopf.subhandler(id="slow")
    def slow(retry, **_):
        note("slow", retry)
        if retry < 1:
            raise kopf.TemporaryError("not yet", delay=5)
