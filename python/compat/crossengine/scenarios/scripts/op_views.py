"""What operators do with bodies: copies, identity, changes, JSON, comparison, pickling."""

import copy
import json
import pickle
import string

from crosslib import note

import kopf

STEPS = [
    ("create", "one", {"spec": {"list": [1, {"a": 2}], "map": {"k": "v"}, "name": "n"}}),
    ("patch", "one", {"spec": {"map": {"k": "w", "n": None}}}),
]


@kopf.on.create("kopfexamples")
def create(body, spec, meta, status, labels, annotations, **_):
    note("identity", spec["map"] is spec["map"], body["spec"]["map"] is spec["map"])
    spec["map"]["mutated"] = True
    note("mutated", body["spec"]["map"])
    note("equal", dict(spec) == body["spec"], spec == body["spec"], spec == dict(spec))
    note("json", json.dumps(dict(spec), sort_keys=True))
    note("copy", copy.deepcopy(spec["list"]), copy.copy(spec["map"]))
    note("get", spec.get("absent"), spec.get("absent", 1), "map" in spec, len(spec), list(spec))
    note("merge", {**spec, "x": 1}["x"], sorted({**meta}.keys() & {"name", "uid"}))
    note("template", string.Template("$name").substitute(spec), "{name}".format(**spec))
    note("bool", bool(status), bool(labels), bool(annotations), bool(spec))
    note("names", meta.name, meta.namespace, meta["name"], body.metadata.name, body.meta.name)
    note("repr", repr(spec), repr(labels), str(dict(labels)))
    note("pickle", pickle.loads(pickle.dumps(spec["map"])))
    for key, value in spec.items():
        note("item", key, value)
    try:
        spec["new"] = 1
    except TypeError as e:
        note("error", str(e))
    try:
        spec["absent"]
    except KeyError as e:
        note("error", repr(e))
    match body:
        case {"spec": {"name": str(found)}}:
            note("match", found)


@kopf.on.update("kopfexamples")
def update(old, new, diff, body, **_):
    note("old", old["spec"], type(old).__name__)
    note("diff", [(str(op), field, a, b) for op, field, a, b in diff])
    note(
        "reduced",
        kopf.dicts.resolve(dict(new), ("spec", "map")) if hasattr(kopf, "dicts") else None,
    )
    note("managed", "managedFields" in body.metadata, sorted(body.metadata))
