"""Results of all kinds beside patches that remove things, in one status."""

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
STEPS = [
    ("create", "one", {"metadata": {"labels": {"l": "1"}}, "spec": {"x": 1}, "status": {"old": {"a": 1, "b": 2}}}),
    ("patch", "one", {"spec": {"x": 2}}),
    ("patch", "one", {"spec": {"x": 3}}),
    ("delete", "one"),
]


@kopf.on.create(*EX)
def mapping(patch, **_):
    patch.status["old"] = {"a": None, "c": [1, {"d": None}]}
    patch.metadata.labels["l"] = None
    patch.meta.annotations["note"] = "kept"
    patch["extra"] = {"top": "level"}
    return {"deep": {"result": [None, True, 1.5, "text"]}}


@kopf.on.create(*EX, id="spec.text")
def text(**_):
    return "a text"


@kopf.on.create(*EX)
def empty(**_):
    return {}


@kopf.on.create(*EX)
def nothing(**_):
    return None


@kopf.on.update(*EX, field="spec.x")
def updated(new, patch, status, retry, **_):
    note(new, retry, dict(status.get("mapping", {})), sorted(status))
    if new == 2:
        patch.status["mapping"] = None
        patch.spec["x2"] = 1
        if retry == 0:
            raise kopf.TemporaryError("patched and failed", delay=0.1)
        return [new, retry]
    patch.setdefault("status", {})["updated"] = None
    patch.status.update(empty=None, text=0)
    del patch["status"]["text"]
    return 0


@kopf.timer(*EX, initial_delay=0.2, interval=3600)
def timed(patch, status, **_):
    patch.status["timed"] = None if "timed" in status else "now"
    return False
