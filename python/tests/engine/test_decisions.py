"""Filters, storages and lifecycles in Python decide as in Kopf."""

from __future__ import annotations

import logging
import socket
import urllib.request

import pytest

import kopf

from .conftest import eventually

pytestmark = pytest.mark.asyncio
EX = ("kopf.dev", "v1", "kopfexamples")
LAST = "kopf.zalando.org/last-handled-configuration"


async def test_filters_get_all_kwargs(examples, kopf_operator):
    given, called = {}, []

    def when(**kwargs):
        given.update(kwargs)
        return kwargs["spec"].get("n") == 1

    @kopf.on.create(
        *EX, when=when, param="P", labels={"a": lambda value, memo, **_: value == "b"}, id="fn"
    )
    async def fn(name, **_):
        called.append(name)

    async with kopf_operator():
        examples.create("no", spec={"n": 2}, metadata={"labels": {"a": "b"}})
        examples.create("neither", spec={"n": 1}, metadata={"labels": {"a": "c"}})
        examples.create("yes", spec={"n": 1}, metadata={"labels": {"a": "b"}})
        await eventually(lambda: called)
        await eventually(lambda: LAST in examples.get("yes")["metadata"].get("annotations", {}))
    assert called == ["yes"]
    names = {"body", "spec", "meta", "status", "name", "namespace", "uid", "labels", "annotations"}
    names |= {"logger", "memo", "patch", "resource", "reason", "old", "new", "diff"}
    assert set(given) == names


async def test_errors_of_filters_throttle_the_object(examples, kopf_operator, caplog):
    caplog.set_level(logging.INFO)
    failed, called = [], []

    def when(**_):
        if not failed:
            failed.append(1)
            raise KeyError("no such thing")
        return True

    @kopf.on.create(*EX, when=when, id="fn")
    async def fn(**_):
        called.append(1)

    settings = kopf.OperatorSettings()
    settings.queueing.error_delays = [0.1]
    async with kopf_operator(settings=settings):
        examples.create()
        await eventually(lambda: called)
    text = "Throttling for 0.1 seconds due to an unexpected error: KeyError('no such thing')"
    assert text in caplog.text


async def test_probes_respond_while_filters_block_the_loop(examples, kopf_operator):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    url = f"http://127.0.0.1:{port}/healthz"
    statuses, called = [], set()

    def when(**_):
        # Blocks the loop, while all other objects wait for their filters.
        while len(statuses) < 20:
            with urllib.request.urlopen(url, timeout=20) as response:
                statuses.append(response.status)
        return True

    @kopf.on.create(*EX, when=when, id="fn")
    async def fn(name, **_):
        called.add(name)

    names = {f"n{number}" for number in range(40)}
    for name in names:
        examples.create(name)
    async with kopf_operator(liveness_endpoint=url):
        await eventually(lambda: called == names)
    assert statuses == [200] * 20


async def test_delays_are_computed(examples, kopf_operator):
    called = []

    @kopf.timer(*EX, initial_delay=lambda spec, **_: spec["delay"], interval=10, id="fn")
    async def fn(name, **_):
        called.append(name)

    async with kopf_operator():
        examples.create("late", spec={"delay": 100})
        examples.create("soon", spec={"delay": 0})
        await eventually(lambda: called)
    assert called == ["soon"]


async def test_lifecycles_of_users_choose_the_order(examples, kopf_operator):
    called = []

    def lifecycle(handlers, *, state, **_):
        return sorted(handlers, key=lambda handler: handler.id, reverse=True)

    @kopf.on.create(*EX, id="a")
    async def a(**_):
        called.append("a")

    @kopf.on.create(*EX, id="b")
    async def b(**_):
        called.append("b")

    async with kopf_operator(lifecycle=lifecycle):
        examples.create()
        await eventually(lambda: len(called) == 2)
    assert called == ["b", "a"]


async def test_storages_of_users_are_used(examples, kopf_operator):
    class Progress(kopf.StatusProgressStorage):
        pass

    class DiffBase(kopf.AnnotationsDiffBaseStorage):
        pass

    called = []

    @kopf.on.create(*EX, id="fn")
    async def fn(retry, **_):
        called.append(examples.get().get("status"))
        if retry == 0:
            raise kopf.TemporaryError("again", delay=1.5)

    settings = kopf.OperatorSettings()
    settings.persistence.progress_storage = Progress(field="status.mine")
    settings.persistence.diffbase_storage = DiffBase(prefix="my.org", key="last")
    async with kopf_operator(settings=settings):
        examples.create(spec={"n": 1})
        obj = await eventually(
            lambda: (
                (o := examples.get())["metadata"].get("annotations", {}).get("my.org/last") and o
            )
        )
    assert called[1]["mine"]["fn"]["retries"] == 1
    assert obj["metadata"]["annotations"]["my.org/last"] == '{"spec":{"n":1}}\n'
    assert obj.get("status", {}).get("mine") in (None, {})


async def test_settings_of_startup_handlers_are_used(examples, kopf_operator):
    @kopf.on.startup(id="configure")
    async def configure(settings, **_):
        settings.persistence.finalizer = "my.org/finalizer"
        settings.execution.default_backoff = 0.01

    retries = []

    @kopf.on.create(*EX, id="fn")
    async def fn(retry, **_):
        retries.append(retry)
        if retry == 0:
            raise Exception("once")

    @kopf.on.delete(*EX, id="delete_fn")
    async def delete_fn(**_):
        pass

    async with kopf_operator():
        examples.create()
        await eventually(lambda: len(retries) == 2)
        assert examples.get()["metadata"]["finalizers"] == ["my.org/finalizer"]


async def test_selectors_can_be_functions(examples, kopf_operator):
    asked, called = set(), []

    def selected(resource):
        asked.add(resource.plural)
        return resource.plural == "kopfexamples"

    @kopf.on.event(selected, id="fn")
    async def fn(name, **_):
        called.append(name)

    async with kopf_operator():
        examples.create()
        await eventually(lambda: called)
    assert called == ["one"]
    assert "pods" in asked
