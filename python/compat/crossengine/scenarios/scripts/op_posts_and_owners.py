"""Kubernetes events of all levels, and metadata for children in all forms."""

import logging

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
STEPS = [
    ("create", "one", {"metadata": {"labels": {"app": "demo"}}, "spec": {}}),
    ("patch", "one", {"spec": {"quiet": True}}),
    ("delete", "one"),
]


def child(**meta):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"template": {}}}


@kopf.on.create(*EX)
def create(body, logger, **_):
    first, second, third = child(), child(name="named", labels={"app": "own"}), child()
    kopf.adopt([first, second])
    kopf.label([first, second], {"extra": "1"}, forced=False, nested=["spec.template"])
    kopf.label(second, {"app": "forced"}, forced=True)
    kopf.harmonize_naming(third, name="fixed", strict=True)
    kopf.append_owner_reference(third, controller=False, block_owner_deletion=False)
    kopf.adjust_namespace(third, namespace="elsewhere", forced=True)
    kopf.annotate(third, {"a": "b"})
    for made in (first, second, third):
        for owner in made["metadata"].get("ownerReferences", ()):
            owner.pop("uid")
    note(first, second, third)
    kopf.remove_owner_reference(third)
    note(third["metadata"].get("ownerReferences"))
    kopf.event(body, type="Custom", reason="Made", message="made by hand")
    kopf.info(body, reason="Info", message="with %s" % "text")
    kopf.warn([body, body], reason="Twice", message="for two")
    try:
        raise ValueError("inner")
    except ValueError as e:
        kopf.exception(body, reason="Failed", exc=e)
        kopf.exception(body, reason="Current", message="with a message")
    logger.warning("a %(kind)s warning", {"kind": "mapped"})
    logger.log(logging.INFO, "information", extra={"more": 1})


@kopf.on.update(*EX)
async def update(body, logger, settings, **_):
    settings.posting.level = logging.ERROR
    logger.warning("not posted")
    logger.error("posted: %s and %r", 1, "two")
    settings.posting.enabled = False
    kopf.info(body, reason="Off", message="not posted either")


@kopf.on.delete(*EX)
def delete(body, settings, **_):
    settings.posting.enabled = True
    settings.posting.level = logging.INFO
    kopf.event(body, type="Normal", reason="Gone", message="x" * 2000)
