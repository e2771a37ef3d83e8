"""Handlers that are replaced in the registry after their declaration, and wrapped functions."""

import asyncio
import dataclasses
import functools

from crosslib import note

import kopf

STEPS = [("create", "one", {"spec": {"field": 1}}), ("patch", "one", {"spec": {"field": 2}})]
RACES = True


def counted(fn):
    calls = []

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        calls.append(kwargs["name"])
        note("counted", len(calls), kwargs.get("retry"))
        return fn(*args, **kwargs)

    return wrapper


def with_client(fn):
    @functools.wraps(fn)
    async def wrapper(spec, **kwargs):
        return await fn(client="client", spec=spec, **kwargs)

    return wrapper


@kopf.on.create("kopfexamples")
@counted
def create(spec, **_):
    return dict(spec)


@kopf.on.update("kopfexamples", retries=2)
@with_client
async def update(client, spec, old, new, **_):
    await asyncio.sleep(0)
    return [client, old["spec"]["field"], new["spec"]["field"]]


class Controller:
    def __init__(self, label):
        self.label = label
        kopf.on.field("kopfexamples", field="spec.field", id="by-method")(self.field)

    def field(self, old, new, **_):
        note("field", self.label, old, new)


controller = Controller("mine")


@kopf.timer("kopfexamples", interval=60, initial_delay=0.1)
def tick(**_):
    note("never: it is guarded")


def install_guard(registry):
    guarded = registry._spawning._handlers
    for index, handler in enumerate(list(guarded)):

        def fn(**_):
            note("guarded")

        guarded[index] = dataclasses.replace(handler, fn=fn)
    note("ids", [str(handler.id) for handler in registry._changing.get_all_handlers()])


install_guard(kopf.get_default_registry())
