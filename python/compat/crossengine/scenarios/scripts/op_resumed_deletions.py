"""Restarts between retries: of a deletion, of an update, and of an object that nobody changed."""

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
RACES = True
STEPS = [
    ("create", "gone", {"spec": {"stage": 0}}),
    ("create", "kept", {"spec": {"stage": 0}}),
    ("delete", "gone"),
    ("patch", "kept", {"spec": {"stage": 1}}),
    ("restart",),
    ("patch", "kept", {"spec": {"stage": 2}}),
    ("patch", "gone", {"spec": {"stage": 3}}),
    ("restart",),
    ("delete", "kept"),
    ("patch", "kept", {"spec": {"stage": 3}}),
]


@kopf.on.resume(*EX, deleted=True, id="all")
def resumed_all(name, reason, retry, **_):
    note("resumed, even deleted", name, reason, retry)
    if retry == 0:
        raise kopf.TemporaryError("once more", delay=0.1)


@kopf.on.resume(*EX, param="r")
@kopf.on.create(*EX, param="c")
@kopf.on.update(*EX, param="u")
def several(name, reason, param, **_):
    note("several", name, reason, param)


@kopf.on.delete(*EX, timeout=60)
def delete(spec, name, started, retry, **_):
    if spec["stage"] < 3:
        if retry < 1:
            note("waiting", name)
        raise kopf.TemporaryError("the stage is not reached", delay=3600 if retry else 0.1)
    note("deleted", name)


@kopf.on.update(*EX, field="spec.stage", new=3, id="third")
def third(old, new, name, **_):
    note("third", name, old, new)
