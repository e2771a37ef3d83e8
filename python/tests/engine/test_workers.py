"""Calls share tasks only where no handler can tell."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

import kopf

from .conftest import eventually

pytestmark = pytest.mark.asyncio
EX = ("kopf.dev", "v1", "kopfexamples")
NAMES = [f"n{number}" for number in range(20)]


async def test_a_context_belongs_to_one_call(examples, kopf_operator):
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    seen = {}

    @kopf.on.create(*EX, id="fn")
    async def fn(name, **_):
        seen[name] = [variable.get(None)]
        variable.set(name)
        if name in ("n3", "n4"):
            await asyncio.sleep(0)
        seen[name].append(variable.get())

    for name in NAMES:
        examples.create(name)
    async with kopf_operator():
        await eventually(lambda: len(seen) == len(NAMES))
        await eventually(lambda: all(len(values) == 2 for values in seen.values()))
    assert seen == {name: [None, name] for name in NAMES}


async def test_calls_that_wait_let_others_run(examples, kopf_operator):
    released = asyncio.Event()
    order = []

    @kopf.on.create(*EX, id="fn")
    async def fn(name, **_):
        if name == "last":
            released.set()
        else:
            await released.wait()
        order.append(name)

    for name in [*NAMES, "last"]:
        examples.create(name)
    async with kopf_operator():
        await eventually(lambda: len(order) == len(NAMES) + 1)
    assert order[0] == "last"


async def test_calls_that_wait_have_tasks_of_their_own(examples, kopf_operator):
    tasks = []

    @kopf.on.create(*EX, id="fn")
    async def fn(**_):
        task = asyncio.current_task()
        await asyncio.sleep(0)
        assert asyncio.current_task() is task
        tasks.append(task)
        await asyncio.wait_for(asyncio.sleep(0), timeout=60)

    for name in NAMES:
        examples.create(name)
    async with kopf_operator():
        await eventually(lambda: len(tasks) == len(NAMES))
    assert len(set(tasks)) == len(NAMES)


async def test_a_call_that_cancels_itself_cancels_nobody_else(examples, kopf_operator):
    handled, cancelled = [], []

    @kopf.on.create(*EX, id="fn")
    async def fn(name, **_):
        if name == "n0":
            asyncio.current_task().cancel()
        try:
            if name != "n0":
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            cancelled.append(name)
            raise
        handled.append(name)

    for name in NAMES:
        examples.create(name)
    async with kopf_operator():
        await eventually(lambda: len(handled) == len(NAMES))
    assert cancelled == []


async def test_many_handlers_in_threads_end(examples, kopf_operator):
    threads = {}

    @kopf.on.create(*EX, id="fn")
    def fn(name, retry, **_):
        if name == "n7" and not retry:
            raise kopf.TemporaryError("once more", delay=0)
        threads[name] = threading.current_thread()
        return name

    for name in NAMES:
        examples.create(name)
    async with kopf_operator():
        await eventually(
            lambda: all((examples.get(name).get("status") or {}).get("fn") for name in NAMES)
        )
    assert set(threads) == set(NAMES)
    assert threading.main_thread() not in threads.values()


async def test_sub_handlers_run_after_calls_that_do_not_wait(examples, kopf_operator):
    @kopf.on.create(*EX, id="fn")
    async def fn(**_):
        @kopf.subhandler(id="sub")
        async def sub(name, patch, **_):
            patch.status["of"] = name
            return 1

    for name in NAMES[:3]:
        examples.create(name)
    async with kopf_operator():
        for name in NAMES[:3]:
            status = await eventually(
                lambda name=name: (s := examples.get(name).get("status")) and "fn/sub" in s and s
            )
            assert status["of"] == name
