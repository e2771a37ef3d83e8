"""Handlers that a startup handler registers, as operators do that read a configuration first."""

from crosslib import note

import kopf

STEPS = [
    ("create", "one", {"metadata": {"labels": {"app": "web"}}, "spec": {"field": 1}}),
    ("patch", "one", {"spec": {"field": 2}}),
    ("delete", "one"),
]
RACES = True
# Kopf has more events: those of its own writes.
DIFFERS = ["lines"]
SELECTED = {"kopfexamples": ["create", "update", "delete"]}


def changed(reason, spec, **_):
    note("changed", reason, dict(spec))


async def seen(name, memo, **_):
    if not memo.get("seen"):
        memo.seen = True
        note("seen", name)


async def tick(patch, status, **_):
    note("tick")
    patch.status["ticks"] = status.get("ticks", 0) + 1


@kopf.on.startup()
async def declare(settings, **_):
    settings.posting.enabled = False
    for resource, reasons in SELECTED.items():
        for reason in reasons:
            getattr(kopf.on, reason)("kopf.dev", "v1", resource, id=f"on-{reason}")(changed)
        kopf.on.event("kopf.dev/v1", resource, when=lambda name, **_: name == "one")(seen)
    kopf.timer("kopfexamples", interval=60)(tick)
    kopf.on.cleanup()(ended)


def ended(**_):
    note("cleaned up")
