"""Fixtures for pytest: a cluster per test, and operators that work with it.

Loaded by pytest when the package is installed (entry point ``kopf``)::

    async def test_it(kopf_cluster, kopf_operator):
        ...
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from kopf._engine.cluster import EmbeddedCluster
from kopf._engine.world import World
from kopf._handlers import causes, execution, handlers, registries
from kopf._structs import ids

if TYPE_CHECKING:
    from kopf._settings import configuration

OperatorFactory = Callable[..., contextlib.AbstractAsyncContextManager[None]]


@pytest.fixture
def kopf_cluster() -> Iterator[EmbeddedCluster]:
    """A Kubernetes API server of the test alone."""
    with EmbeddedCluster() as cluster:
        yield cluster


@pytest.fixture
def kopf_world(kopf_registry: registries.OperatorRegistry) -> Iterator[World]:
    """A cluster of the test alone with a virtual clock: ``async with kopf_world.operator():``."""
    with World() as world:
        yield world


@pytest.fixture
def kopf_registry(monkeypatch: pytest.MonkeyPatch) -> registries.OperatorRegistry:
    """A registry of the test alone: the decorators put handlers there."""
    registry = registries.OperatorRegistry()
    monkeypatch.setattr(registries, "_default_registry", registry)
    return registry


@pytest.fixture
def kopf_operator(
    kopf_cluster: EmbeddedCluster, kopf_registry: registries.OperatorRegistry
) -> OperatorFactory:
    """Runs the operator of ``kopf_registry`` in ``kopf_cluster``: ``async with kopf_operator():``.

    The resources of the handlers are defined unless they exist. Keywords go to ``kopf.operator()``.
    """

    @contextlib.asynccontextmanager
    async def run(
        *, settings: configuration.OperatorSettings | None = None, **options: Any
    ) -> AsyncIterator[None]:
        from kopf._run import running

        kopf_cluster.install(kopf_registry)
        login_to(kopf_cluster, kopf_registry)
        options.setdefault("clusterwide", not options.get("namespaces"))
        options.setdefault("standalone", True)
        stop_flag, ready_flag = asyncio.Event(), asyncio.Event()
        operator = asyncio.create_task(
            running.operator(
                registry=kopf_registry,
                settings=settings,
                stop_flag=stop_flag,
                ready_flag=ready_flag,
                **options,
            )
        )
        waiting = asyncio.create_task(ready_flag.wait())
        await asyncio.wait({operator, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        try:
            yield
        finally:
            stop_flag.set()
            await operator

    return run


def login_to(cluster: EmbeddedCluster, registry: registries.OperatorRegistry) -> None:
    """Let the operators of a registry log in to a cluster."""

    def login(**_: Any) -> Any:
        return cluster.connection_info()

    registry._activities.append(
        handlers.ActivityHandler(
            id=ids.HandlerId("login"),
            fn=login,
            param=None,
            errors=execution.ErrorsMode.PERMANENT,
            timeout=None,
            retries=None,
            backoff=None,
            activity=causes.Activity.AUTHENTICATION,
        )
    )
