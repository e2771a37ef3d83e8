"""Logins that fail: an operator ends at once with the reason, or tries again until it works."""

from __future__ import annotations

import asyncio
import dataclasses
import logging

import pytest

import kopf
from kopf._engine.errors import ActivityError

from .conftest import eventually

EX = ("kopf.dev", "v1", "kopfexamples")


def operate(**options):
    """Run the operator of the default registry."""
    return asyncio.wait_for(kopf.operator(clusterwide=True, standalone=True, **options), 20)


@pytest.fixture
def steps(kopf_registry):
    """What has happened; with the handlers that tell it."""
    happened: list[str] = []

    @kopf.on.startup(id="start")
    def start(**_):
        happened.append("startup")

    @kopf.on.cleanup(id="clean")
    def clean(**_):
        happened.append("cleanup")

    return happened


@pytest.mark.asyncio
async def test_a_permanent_error_of_a_login_ends_the_operator(steps, caplog):
    error = kopf.PermanentError("no way")

    @kopf.on.login(id="log-in")
    def login(**_):
        raise error

    with pytest.raises(ActivityError) as caught:
        await operate()
    assert caught.value.__cause__ is error
    assert caught.value.outcomes["log-in"].exception is error
    assert steps == ["startup", "cleanup"]
    assert "Activity 'log-in' failed permanently: no way" in caplog.text
    assert "Credentials retriever has failed: " in caplog.text


@pytest.mark.asyncio
async def test_too_many_errors_of_a_login_end_the_operator(steps):
    attempts = []

    @kopf.on.login(id="log-in", retries=2, backoff=0.01)
    async def login(retry, **_):
        attempts.append(retry)
        raise ValueError("not yet")

    with pytest.raises(ActivityError):
        await operate()
    assert attempts == [0, 1]
    assert steps == ["startup", "cleanup"]


@pytest.mark.parametrize("errors", [kopf.ErrorsMode.IGNORED, None])
@pytest.mark.asyncio
async def test_an_operator_without_credentials_ends(steps, caplog, errors):
    @kopf.on.login(id="log-in", errors=errors)
    def login(**_):
        if errors is not None:
            raise ValueError("boo")

    with pytest.raises(kopf.LoginError, match="ran out of valid credentials"):
        await operate()
    assert steps == ["startup", "cleanup"]
    assert "has failed: no credentials were retrieved from the login handlers." in caplog.text


@pytest.mark.asyncio
async def test_temporary_and_other_errors_of_a_login_are_retried(
    steps, examples, kopf_cluster, kopf_registry, caplog
):
    caplog.set_level(logging.INFO)
    created, stop = asyncio.Event(), asyncio.Event()

    @kopf.on.login(id="log-in", backoff=0.01)
    def login(retry, **_):
        if retry == 0:
            raise kopf.TemporaryError("not yet", delay=0.01)
        if retry == 1:
            raise ValueError("not yet")
        return kopf_cluster.connection_info()

    @kopf.on.create(*EX, id="create")
    async def create(**_):
        created.set()

    examples.create()
    running = asyncio.create_task(operate(stop_flag=stop))
    await eventually(created.is_set)
    stop.set()
    await running
    assert "Activity 'log-in' failed temporarily: not yet" in caplog.text
    assert "Initial authentication has finished." in caplog.text


@pytest.mark.asyncio
async def test_rejected_credentials_are_replaced_as_soon_as_there_are_others(
    steps, examples, kopf_cluster, caplog
):
    caplog.set_level(logging.INFO)
    created, stop, tokens = asyncio.Event(), asyncio.Event(), []

    @kopf.on.login(id="log-in")
    def login(**_):
        good = kopf_cluster.connection_info()
        tokens.append(None if len(tokens) < 3 else good.token)
        return good if tokens[-1] else dataclasses.replace(good, token="wrong")

    @kopf.on.create(*EX, id="create")
    async def create(**_):
        created.set()

    examples.create()
    running = asyncio.create_task(operate(stop_flag=stop))
    await eventually(created.is_set)
    stop.set()
    await running
    assert len(tokens) == 4
    assert "Re-authentication has finished." in caplog.text
