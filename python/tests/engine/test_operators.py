"""Operators start, stop and fail as in Kopf, wherever they run."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import sys
import threading

import aiohttp
import pytest

import kopf
from kopf._engine.errors import ActivityError
from kopf._engine.fixtures import login_to
from kopf._structs import credentials

from .conftest import eventually

EX = ("kopf.dev", "v1", "kopfexamples")
LAST = "kopf.zalando.org/last-handled-configuration"


@pytest.mark.asyncio
async def test_a_failed_startup_is_raised_with_its_cause(kopf_operator):
    error = kopf.PermanentError("no way")

    @kopf.on.startup(id="start")
    async def start(**_):
        raise error

    with pytest.raises(ActivityError) as caught:
        async with kopf_operator():
            pass
    assert caught.value.__cause__ is error
    assert caught.value.outcomes["start"].exception is error


@pytest.mark.asyncio
async def test_activities_run_in_order(examples, kopf_operator):
    steps = []

    @kopf.on.startup(id="start")
    def start(**_):
        steps.append("startup")

    @kopf.on.create(*EX, id="create")
    def create(**_):
        steps.append("create")

    @kopf.on.cleanup(id="clean")
    def clean(**_):
        steps.append("cleanup")

    async with kopf_operator():
        examples.create()
        await eventually(lambda: len(steps) == 2)
    assert steps == ["startup", "create", "cleanup"]


def test_an_operator_runs_in_a_thread_with_its_own_loop(kopf_cluster, kopf_registry, examples):
    called = threading.Event()

    @kopf.on.create(*EX, id="create")
    def create(**_):
        called.set()

    login_to(kopf_cluster, kopf_registry)
    ready, stop = threading.Event(), threading.Event()

    def run():
        asyncio.run(
            kopf.operator(
                registry=kopf_registry,
                ready_flag=ready,
                stop_flag=stop,
                clusterwide=True,
                standalone=True,
            )
        )

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(10)
    examples.create()
    assert called.wait(10)
    stop.set()
    thread.join(10)
    assert not thread.is_alive()


@pytest.mark.asyncio
async def test_two_operators_run_in_one_loop(kopf_cluster, examples, caplog):
    caplog.set_level(logging.INFO)
    registries = [kopf.OperatorRegistry(), kopf.OperatorRegistry()]
    called = []
    stop = asyncio.Event()
    tasks = []
    for number, registry in enumerate(registries):

        @kopf.on.event(*EX, registry=registry, id="fn")
        async def fn(number=number, **_):
            called.append(number)

        login_to(kopf_cluster, registry)
        operator = kopf.operator(
            registry=registry, stop_flag=stop, clusterwide=True, standalone=True
        )
        tasks.append(asyncio.create_task(operator))
    await eventually(lambda: caplog.text.count("authentication has finished") == 2)
    examples.create()
    await eventually(lambda: {*called} == {0, 1})
    stop.set()
    await asyncio.gather(*tasks)


@pytest.mark.asyncio
async def test_nothing_is_left_when_an_operator_has_ended(examples, kopf_operator):
    @kopf.on.create(*EX, id="create")
    async def create(**_):
        pass

    async with kopf_operator():
        pass
    threads = threading.active_count()
    descriptors = len(os.listdir("/proc/self/fd"))
    tasks = len(asyncio.all_tasks())
    async with kopf_operator():
        examples.create()
        await eventually(lambda: LAST in examples.get()["metadata"].get("annotations", {}))
    gc.collect()
    await eventually(lambda: threading.active_count() <= threads)
    assert len(asyncio.all_tasks()) == tasks
    assert [t for t in os.listdir("/proc/self/task") if _name(t) == "kopf-engine"] == []
    await eventually(lambda: len(os.listdir("/proc/self/fd")) <= descriptors)


def _name(task):
    try:
        with open(f"/proc/self/task/{task}/comm") as file:
            return file.read().strip()
    except OSError:  # It has just ended.
        return ""


@pytest.mark.asyncio
async def test_a_handler_that_runs_at_the_end_is_cancelled(examples, kopf_operator):
    steps = []

    @kopf.on.create(*EX, id="create")
    async def create(**_):
        steps.append("started")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            steps.append("cancelled")
            raise

    settings = kopf.OperatorSettings()
    settings.queueing.exit_timeout = 0.1
    async with kopf_operator(settings=settings):
        examples.create()
        await eventually(lambda: steps)
    assert steps == ["started", "cancelled"]


@pytest.mark.asyncio
async def test_events_of_handlers_are_posted(examples, kopf_cluster, kopf_operator):
    @kopf.on.create(*EX, id="create")
    def create(body, logger, **_):
        kopf.info(body, reason="Hello", message="world")
        logger.warning("look here")

    settings = kopf.OperatorSettings()
    settings.posting.loggers = True
    async with kopf_operator(settings=settings):
        examples.create()

        def posted():
            events = kopf_cluster.request("GET", "/api/v1/namespaces/default/events")["items"]
            return {(event["type"], event["reason"], event["message"]) for event in events}

        wanted = {("Normal", "Hello", "world"), ("Warning", "Logging", "look here")}
        await eventually(lambda: wanted <= posted())
        wanted = {("Normal", "Logging", "Handler 'create' succeeded.")}
        await eventually(lambda: wanted <= posted())


@pytest.mark.asyncio
async def test_sessions_of_users_carry_all_requests(kopf_cluster, kopf_registry, examples):
    called, requested = [], []

    async def note(session, context, params):
        requested.append((params.method, params.url.path))

    trace = aiohttp.TraceConfig()
    trace.on_request_start.append(note)
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=kopf_cluster.connection_info().as_ssl_context()),
        headers=kopf_cluster.connection_info().as_http_headers(),
        trace_configs=[trace],
    )

    @kopf.on.login(id="login")
    async def login(**_):
        return kopf.AiohttpSession(server=kopf_cluster.url, aiohttp_session=session)

    @kopf.on.create(*EX, id="create")
    async def create(**_):
        called.append(1)

    stop = asyncio.Event()
    operator = kopf.operator(
        registry=kopf_registry, stop_flag=stop, clusterwide=True, standalone=True
    )
    task = asyncio.create_task(operator)
    examples.create()
    await eventually(lambda: called)
    await eventually(lambda: LAST in examples.get()["metadata"].get("annotations", {}))
    stop.set()
    await task
    assert ("PATCH", "/apis/kopf.dev/v1/namespaces/default/kopfexamples/one") in requested
    assert session.closed


@pytest.mark.asyncio
async def test_credentials_in_the_vault_are_used_first(kopf_cluster, kopf_registry, examples):
    logins, called = [], []

    @kopf.on.login(id="login")
    async def login(**_):
        logins.append(1)

    @kopf.on.create(*EX, id="create")
    async def create(**_):
        called.append(1)

    vault = credentials.Vault({"mine": kopf_cluster.connection_info()})
    stop = asyncio.Event()
    operator = kopf.operator(
        registry=kopf_registry, vault=vault, stop_flag=stop, clusterwide=True, standalone=True
    )
    task = asyncio.create_task(operator)
    examples.create()
    await eventually(lambda: called)
    stop.set()
    await task
    assert logins == []


FORKING = """
import os, sys
from kopf import _native

cluster = _native.Cluster()
operator = _native.Operator('{"handlers": [], "settings": {}}')
operator.start()
child = os.fork()
if child == 0:
    del cluster, operator
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
operator.close()
cluster.stop()
"""


def test_a_forked_process_ends():
    command = [sys.executable, "-W", "ignore", "-c", FORKING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "7\n"
