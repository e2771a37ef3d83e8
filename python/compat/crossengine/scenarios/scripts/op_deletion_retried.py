"""A deletion that is retried later, while an update is not finished: its progress stays."""

from crosslib import note

import kopf

STEPS = [
    ("create", "one", {"spec": {"items": ["a"], "other": 1}}),
    ("patch", "one", {"spec": {"items": ["a", "b"]}}),
    ("delete", "one"),
    ("patch", "one", {"metadata": {"labels": {"seen": "yes"}}}),
    ("restart",),
]


@kopf.on.create("kopfexamples")
def create(**_):
    note("create")


@kopf.on.update("kopfexamples", field="spec.items")
def items(retry, **_):
    note("items", retry)
    raise kopf.TemporaryError("not now", delay=300)


@kopf.on.delete("kopfexamples")
def delete(retry, **_):
    note("delete", retry)
    raise kopf.TemporaryError("still in use", delay=300)
