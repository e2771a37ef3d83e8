"""Pieces of code from the life of public operators give what they give with Kopf."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

COMPAT = pathlib.Path(__file__).parents[1] / "compat"
KOPF: dict[str, str] = json.loads((COMPAT / "usages-1.45.2.json").read_text())


def pieces() -> list[str]:
    spec = importlib.util.spec_from_file_location("usages", COMPAT / "usages.py")
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: list[str] = module.pieces()
    return found


@pytest.fixture(scope="module")
def ours() -> dict[str, str]:
    """All outcomes, from a process of its own: some pieces change global state."""
    command = [sys.executable, str(COMPAT / "usages.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    outcomes: dict[str, str] = json.loads(done.stdout)
    return outcomes


def test_every_piece_was_run_with_kopf() -> None:
    assert pieces() == list(KOPF)


@pytest.mark.parametrize("code", KOPF)
def test_usage_gives_the_same_as_with_kopf(code: str, ours: dict[str, str]) -> None:
    assert ours[code] == KOPF[code]
