"""Custom lifecycles, for handlers and sub-handlers."""

from crosslib import note

import kopf

STEPS = [("create", "one", {"spec": {}}), ("patch", "one", {"spec": {"x": 1}})]


def backwards(handlers, *, body, retry=None, **kwargs):
    if handlers:
        note(
            "choose",
            [handler.id for handler in handlers],
            sorted(kwargs)[:3],
            body["metadata"]["name"],
        )
    return list(handlers)[-1:]


kopf.set_default_lifecycle(backwards)
note("default", kopf.get_default_lifecycle().__name__)


@kopf.on.create("kopfexamples")
def first(**_):
    note("first")


@kopf.on.create("kopfexamples")
def second(**_):
    note("second")


@kopf.on.update("kopfexamples")
async def parent(spec, **_):
    async def sub(name, **_):
        note("sub", name)

    await kopf.execute(fns={"a": sub, "b": sub}, lifecycle=kopf.lifecycles.all_at_once)
