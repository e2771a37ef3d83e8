"""Handlers that call each other: with all kwargs, with a few, through wrappers, from threads."""

import asyncio
import functools
import logging

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
STEPS = [
    ("create", "app", {"spec": {"chart": "redis", "values": {"a": 1}}}),
    ("patch", "app", {"spec": {"values": {"a": 2}}}),
    ("patch", "app", {"spec": {"pause": True}}),
    ("patch", "app", {"spec": {"pause": None, "values": {"b": 1}}}),
    ("delete", "app"),
]
log = logging.getLogger(__name__)


def audited(fn):
    """A wrapper of any handler, asynchronous or not."""
    if asyncio.iscoroutinefunction(fn):

        @functools.wraps(fn)
        async def wrapper(*args, **kwargs):
            note("before", fn.__name__, kwargs["name"], sorted(k for k in kwargs if k < "f"))
            try:
                return await fn(*args, audited=True, **kwargs)
            finally:
                note("after", fn.__name__)

    else:

        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            note("before", fn.__name__, kwargs["name"])
            return fn(*args, audited=True, **kwargs)

    return wrapper


def needs_chart(fn):
    @functools.wraps(fn)
    def checked(spec, **kwargs):
        if spec.get("pause"):
            return {"skipped": True}
        return fn(spec=spec, chart=spec["chart"], **kwargs)

    return checked


@kopf.on.create(*EX)
@audited
@needs_chart
def install(spec, name, chart, body, logger, **kwargs):
    logger.info("installing %s as %s", chart, name)
    note("install", name, chart, kwargs["audited"], kwargs["retry"], str(kwargs["reason"]))
    return values(body=body, **{"extra": 1})


def values(body, extra, **kwargs):
    note("values", body["spec"]["values"], extra, kwargs)
    return dict(body["spec"].get("values", {}), extra=extra)


@kopf.on.update(*EX)
@audited
async def upgrade(spec, body, patch, audited, **kwargs):
    note("upgrade", audited, len(kwargs["diff"]))
    result = await asyncio.to_thread(install, spec=spec, body=body, patch=patch, **kwargs)
    patch.status["revision"] = body.status.get("revision", 0) + 1
    # A handler may also be called with a plain object.
    plain = {"metadata": {"name": "other"}, "spec": {"chart": "x", "values": {}}}
    install(spec=plain["spec"], name="other", body=plain, logger=log, retry=0, reason="direct")
    return result


@kopf.on.delete(*EX)
async def remove(name, spec, **kwargs):
    def work():
        # A loop of its own in a thread.
        return asyncio.run(uninstall(name, **kwargs))

    note("removed", await asyncio.get_running_loop().run_in_executor(None, work))


async def uninstall(name, retry, **_):
    await asyncio.sleep(0)
    return f"{name} at {retry}"


@kopf.on.event(*EX)
def watch(event, type, name, **_):
    if type == "DELETED":
        note("event", type, name, sorted(event))
