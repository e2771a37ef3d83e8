"""Functions that change the object: lists of conditions, custom finalizers."""

from crosslib import note

import kopf

# Fewer writes, and so fewer events.
DIFFERS = ["lines"]
STEPS = [
    ("create", "one", {"spec": {"items": ["a"]}}),
    ("patch", "one", {"spec": {"items": ["a", "b"]}}),
    ("delete", "one"),
]


def set_condition(body, *, type, value):
    conditions = body.setdefault("status", {}).setdefault("conditions", [])
    for condition in conditions:
        if condition["type"] == type:
            condition["status"] = value
            return
    conditions.append({"type": type, "status": value})


@kopf.on.create("kopfexamples")
@kopf.on.update("kopfexamples")
def ready(spec, patch, **_):
    patch.fns.append(lambda body: set_condition(body, type="Ready", value=str(len(spec["items"]))))
    patch.status["count"] = len(spec["items"])
    patch.metadata.annotations["example.dev/items"] = "-".join(spec["items"])


@kopf.on.create("kopfexamples")
async def block(patch, **_):
    def add(body):
        finalizers = body.setdefault("metadata", {}).setdefault("finalizers", [])
        if "example.dev/other" not in finalizers:
            finalizers.append("example.dev/other")

    patch.fns.append(add)


@kopf.on.event("kopfexamples")
def release(meta, patch, **_):
    if meta.deletion_timestamp:
        note("deleting", list(meta.get("finalizers", [])))

        def remove(body):
            found = body["metadata"].get("finalizers") or []
            if "example.dev/other" in found:
                found.remove("example.dev/other")

        patch.fns.append(remove)
