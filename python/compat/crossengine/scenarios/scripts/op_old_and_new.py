"""Filters by old and new values: constants, presence, functions, and several at once."""

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
STEPS = [
    ("create", "one", {"spec": {"a": 1, "deep": {"er": {"x": "v"}}}}),
    ("patch", "one", {"spec": {"a": 2}}),
    ("patch", "one", {"spec": {"a": None}}),
    ("patch", "one", {"spec": {"a": 0}}),
    ("patch", "one", {"spec": {"deep": {"er": None}}}),
    ("patch", "one", {"metadata": {"labels": {"tier": "gold"}, "annotations": {"n": "1"}}}),
    ("patch", "one", {"metadata": {"labels": {"tier": "iron"}}}),
    ("delete", "one"),
]


def handler(title):
    def fn(old, new, reason, **_):
        note(title, repr(old), repr(new), reason)

    return fn


for title, options in {
    "from-one": {"field": "spec.a", "old": 1},
    "to-two": {"field": "spec.a", "new": 2},
    "appears": {"field": "spec.a", "old": kopf.ABSENT, "new": kopf.PRESENT},
    "vanishes": {"field": "spec.a", "old": kopf.PRESENT, "new": kopf.ABSENT},
    "grows": {"field": "spec.a", "new": lambda value, **_: isinstance(value, int) and value > 1},
    "falsy": {"field": "spec.a", "new": 0},
    "deep": {"field": "spec.deep.er.x"},
    "tuple": {"field": ("spec", "deep", "er"), "new": kopf.ABSENT},
    "label": {"field": "metadata.labels.tier", "old": "gold"},
    "both": {"field": "spec.a", "value": 2, "labels": {"tier": kopf.ABSENT}},
    "callable": {
        "labels": {"tier": lambda value, **_: value in ("gold", "iron")},
        "annotations": {"n": "1"},
        "when": kopf.any_([lambda diff, **_: len(diff) > 1, lambda spec, **_: spec.get("a") == 0]),
    },
}.items():
    kopf.on.update(*EX, id=title, **options)(handler(title))

kopf.on.field(*EX, field="spec.a", id="field", value=lambda value, **_: isinstance(value, int))(
    handler("field")
)
kopf.on.create(*EX, field="spec.deep", id="made")(handler("made"))
kopf.on.create(*EX, field="spec.none", id="unmade", value=kopf.PRESENT)(handler("unmade"))
kopf.on.delete(*EX, field="spec.a", value=kopf.PRESENT, id="deleted")(handler("deleted"))
