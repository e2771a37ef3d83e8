"""Fixtures of all tests."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

from tests.operators import World


@pytest.fixture
def world(tmp_path: pathlib.Path) -> Iterator[World]:
    """A cluster with operators in processes of their own."""
    world = World(tmp_path)
    yield world
    world.close()
