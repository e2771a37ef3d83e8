"""Handlers that change what they handle: as in `cross_check/sets.rs`."""

import kopf

from cross_check_common import KIND, note


def add_x(body):
    if "x" not in body["spec"]["items"]:
        body["spec"]["items"].append("x")


@kopf.on.create(*KIND)
def changing(retry, reason, patch, **_):
    note("changing", retry, reason)
    patch.spec["added"] = True
    patch.meta["labels"] = {"added": "yes"}
    patch.status["changed"] = True
    patch.fns.append(add_x)


@kopf.on.update(*KIND)
def rehandled(retry, reason, diff, **_):
    note("rehandled", retry, reason)
    return sorted(".".join(item.field) for item in diff)
