from crosslib import note

import kopf

STEPS = [
    [
        "create",
        "one",
        {"spec": {"a": 1}, "metadata": {"labels": {"l": "1"}, "annotations": {"n": "2"}}},
    ]
]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX, param="P")
def fn(**kwargs):
    note(sorted(kwargs))
    note(kwargs["param"], kwargs["retry"], kwargs["name"], kwargs["namespace"], kwargs["reason"])
    note(
        dict(kwargs["labels"]),
        dict(kwargs["annotations"]),
        kwargs["diff"],
        kwargs["old"],
        kwargs["new"],
    )
    note(
        type(kwargs["body"]).__name__,
        type(kwargs["spec"]).__name__,
        type(kwargs["meta"]).__name__,
        type(kwargs["patch"]).__name__,
    )
    note(
        str(kwargs["resource"]),
        kwargs["resource"].kind,
        kwargs["resource"].namespaced,
        sorted(kwargs["resource"].verbs),
    )
    note(
        sorted(kwargs["body"]),
        kwargs["runtime"].total_seconds() < 5,
        kwargs["started"].tzinfo is not None,
    )
