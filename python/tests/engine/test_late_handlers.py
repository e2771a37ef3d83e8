"""Handlers that startup handlers register, endless delays, and indexes that applications read."""

from __future__ import annotations

import itertools
import random

import pytest

import kopf
from kopf._engine import declaring
from kopf._handlers.indexing import OperatorIndexers

from .conftest import eventually

EX = ("kopf.dev", "v1", "kopfexamples")


@pytest.mark.asyncio
async def test_handlers_of_all_kinds_are_registered_at_startup(
    examples, kopf_registry, kopf_operator
):
    calls = []

    def note(title):
        return lambda **_: calls.append(title)

    @kopf.on.startup(id="start")
    def start(**_):
        kopf.index(*EX, id="apps")(lambda labels, name, **_: {labels.get("a"): name})
        kopf.on.event(*EX, id="event", when=lambda name, **_: name == "one")(note("event"))
        kopf.timer(*EX, id="timer", interval=60)(note("timer"))
        kopf.on.cleanup(id="cleanup")(note("cleanup"))

        @kopf.on.create(*EX, id="create")
        async def create(apps, name, **_):
            calls.append(f"create {name}: {sorted(apps['b'])}")

    async with kopf_operator():
        examples.create(metadata={"labels": {"a": "b"}})
        examples.create("two")
        wanted = {"event", "timer", "create one: ['one']", "create two: ['one']"}
        await eventually(lambda: wanted <= set(calls))
    assert calls[-1] == "cleanup"


@pytest.mark.asyncio
async def test_handlers_that_are_registered_later_are_reported(examples, kopf_operator, caplog):
    @kopf.on.create(*EX, id="create")
    def create(**_):
        kopf.on.event(*EX, id="too-late")(lambda **_: None)

    async with kopf_operator():
        examples.create()
        await eventually(lambda: "'too-late' is ignored" in caplog.text)


@pytest.mark.asyncio
async def test_unusable_handlers_of_the_startup_end_the_operator(kopf_operator):
    ended = []

    @kopf.on.startup(id="start")
    def start(**_):
        kopf.on.event(*EX, id="wrong")(lambda **_: None)
        registry = kopf.get_default_registry()
        object.__setattr__(registry._watching._handlers[-1], "retries", "many")

    @kopf.on.cleanup(id="clean")
    def clean(**_):
        ended.append(True)

    with pytest.raises(RuntimeError, match="registered at startup cannot be used"):
        async with kopf_operator():
            pass
    assert ended == [True]


@pytest.mark.asyncio
async def test_an_application_reads_the_indexes_of_its_operator(examples, kopf_operator):
    indexers = OperatorIndexers()
    indices = indexers.indices

    @kopf.index(*EX, id="names")
    def names(name, **_):
        return {name: len(name)}

    async with kopf_operator(indexers=indexers):
        examples.create()
        await eventually(lambda: "one" in indices["names"])
        assert list(indices["names"]["one"]) == [3] and list(indices) == ["names"]


class Delays:
    def __iter__(self):
        while True:
            yield random.random()


def test_endless_delays_are_read_once():
    settings = kopf.OperatorSettings()
    settings.networking.error_backoffs = Delays()
    settings.queueing.error_delays = itertools.count(1)
    first = declaring.describe_settings(settings)
    assert len(first["networking.error_backoffs"]) == 100
    assert first["queueing.error_delays"][:3] == [1, 2, 3]
    assert declaring.describe_settings(settings) == first
    settings.networking.error_backoffs = Delays()
    assert declaring.describe_settings(settings) != first


def test_finite_delays_are_followed():
    settings = kopf.OperatorSettings()
    settings.networking.error_backoffs = [1]
    settings.networking.error_backoffs.append(2)
    assert declaring.describe_settings(settings)["networking.error_backoffs"] == [1, 2]
