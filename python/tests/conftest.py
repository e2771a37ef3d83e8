"""Fixtures of all tests."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

from kopf._engine.fixtures import kopf_cluster, kopf_operator, kopf_registry, kopf_world
from tests.operators import World

# Loaded by the entry point only if the package is installed.
__all__ = ["kopf_cluster", "kopf_operator", "kopf_registry", "kopf_world"]


@pytest.fixture
def world(tmp_path: pathlib.Path) -> Iterator[World]:
    """A cluster with operators in processes of their own."""
    world = World(tmp_path)
    yield world
    world.close()
