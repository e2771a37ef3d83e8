"""Filters, error modes, events, indexes, built-in resources: as in `cross_check/sets.rs`."""

import json
import os

import kopf

from cross_check_common import KIND, note


@kopf.on.event(*KIND)
def seen(**_):
    """Returns nothing: the results of event handlers make Kopf wait for its own writes for seconds."""


@kopf.index(*KIND)
def by_field(spec, name, **_):
    return {spec["field"]: name} if spec.get("field") else None


@kopf.on.create(*KIND)
def indexed(retry, reason, by_field, **_):
    note("indexed", retry, reason)
    return sorted(by_field)


@kopf.on.create(*KIND, labels={"tier": "live"})
def labelled(retry, reason, **_):
    note("labelled", retry, reason)


@kopf.on.create(*KIND, labels={"tier": kopf.ABSENT})
def unlabelled(retry, reason, **_):
    note("unlabelled", retry, reason)


@kopf.on.create(*KIND, annotations={"note": kopf.PRESENT})
def annotated(retry, reason, **_):
    note("annotated", retry, reason)


@kopf.on.create(*KIND, when=lambda spec, **_: spec.get("n", 0) > 1)
def large(retry, reason, **_):
    note("large", retry, reason)


@kopf.on.create(*KIND, field="spec.n", value=1)
def one(retry, reason, **_):
    note("one", retry, reason)
    return "one"


@kopf.on.update(*KIND, field="spec.n", old=1, new=2)
def one_to_two(retry, reason, **_):
    note("one_to_two", retry, reason)


@kopf.on.field(*KIND, field="spec.n", new=kopf.ABSENT)
def removed(retry, reason, old, **_):
    note("removed", retry, reason)
    return {"old": old}


@kopf.on.update(*KIND, field="metadata.labels")
def relabelled(retry, reason, **_):
    note("relabelled", retry, reason)


@kopf.on.create(*KIND, errors=kopf.ErrorsMode.PERMANENT)
def strict(retry, reason, **_):
    note("strict", retry, reason)
    raise ValueError("no")


@kopf.on.create(*KIND, errors=kopf.ErrorsMode.TEMPORARY, backoff=0.1)
def patient(retry, reason, **_):
    note("patient", retry, reason)
    if retry < 2:
        raise ValueError("soon")
    return retry


@kopf.on.create(*KIND, timeout=0.5)
def hasty(retry, reason, **_):
    note("hasty", retry, reason)
    raise kopf.TemporaryError("later", delay=0.2)


@kopf.on.create(*KIND, retries=1)
def single(retry, reason, **_):
    note("single", retry, reason)
    raise kopf.TemporaryError("never again", delay=0.1)


@kopf.on.create(*KIND)
async def family(**_):
    @kopf.subhandler(id="good")
    def good(retry, reason, **_):
        note("family/good", retry, reason)
        return {"good": True}

    @kopf.subhandler(id="bad")
    def bad(retry, reason, **_):
        note("family/bad", retry, reason)
        raise kopf.PermanentError("bad")


@kopf.on.resume(*KIND, deleted=True)
def still_there(retry, reason, **_):
    note("still_there", retry, reason)


@kopf.on.delete(*KIND)
def deleting(retry, reason, **_):
    note("deleting", retry, reason)


@kopf.on.create("v1", "configmaps", labels={"mine": "yes"})
def mapped(retry, reason, **_):
    note("mapped", retry, reason)


@kopf.on.cleanup()
def cleaned(**_):
    with open(os.environ["CALLS"], "a") as calls:
        calls.write(json.dumps(["cleaned", 0, "cleanup"]) + "\n")
