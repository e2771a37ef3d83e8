"""Indexes of several kinds that timers, daemons and handlers of other objects read."""

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
STEPS = [
    ("create", "a", {"spec": {"team": "red", "size": 1, "tags": ["x", "y"]}}),
    ("create", "b", {"spec": {"team": "red", "size": 2, "tags": ["y"]}}),
    ("create", "reader", {"spec": {"reads": True}}),
    ("patch", "b", {"spec": {"team": "blue", "tags": None}}),
    ("patch", "reader", {"spec": {"again": 1}}),
    ("delete", "a"),
    ("patch", "reader", {"spec": {"again": 2}}),
    ("delete", "reader"),
]


@kopf.index(*EX, field="spec.team")
def teams(spec, name, **_):
    return {spec["team"]: name}


@kopf.index(*EX, when=lambda spec, **_: spec.get("tags"))
def tags(spec, name, namespace, **_):
    return {(namespace, tag): {name: spec["size"]} for tag in spec["tags"]}


@kopf.index(*EX)
def plain(spec, **_):
    if spec.get("size") == 2 and spec["team"] == "blue":
        raise kopf.PermanentError("blue is not indexed")
    return spec.get("size")


def contents(teams, tags, plain):
    return {
        "teams": {key: sorted(values) for key, values in sorted(teams.items())},
        "tags": {"/".join(key): sorted(map(str, values)) for key, values in sorted(tags.items())},
        "plain": sorted(map(str, plain[None])) if None in plain else [],
    }


@kopf.timer(*EX, interval=3600, when=lambda spec, **_: spec.get("reads"))
def timed(teams, tags, plain, **_):
    note("timer", contents(teams, tags, plain))


@kopf.on.update(*EX, field="spec.again", param=3)
def reading(teams: kopf.Index, tags: kopf.Index, plain: kopf.Index, param, **_):
    note("update", param, contents(teams, tags, plain), len(teams), bool(tags), "red" in teams)


@kopf.on.delete(*EX, when=lambda teams, spec, **_: spec.get("reads") and "blue" in teams)
def leaving(teams, tags, plain, **_):
    note("delete", contents(teams, tags, plain))
