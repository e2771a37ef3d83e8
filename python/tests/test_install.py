"""The original Kopf in the same environment is an error with an explanation."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import kopf

PACKAGE = pathlib.Path(kopf.__file__).parent
# The beginning of the original package, which imports its decorators first.
ORIGINAL = "from kopf import (\n    on,\n)\n"


@pytest.fixture
def site(tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of the package without the native module: it is not needed for the check."""
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "kopf", ignore=ignored)
    return tmp_path


def import_kopf(site: pathlib.Path, statement: str = "import kopf") -> str:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-c", statement]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=site)
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


def test_ours_over_the_original_is_refused(site: pathlib.Path) -> None:
    (site / "kopf-1.45.2.dist-info").mkdir()
    assert "Both kopf-rs and the original kopf are installed" in import_kopf(site)


@pytest.mark.parametrize("statement", ["import kopf", "from kopf.cli import main"])
def test_the_original_over_ours_is_refused(site: pathlib.Path, statement: str) -> None:
    (site / "kopf-1.45.2.dist-info").mkdir()
    (site / "kopf" / "__init__.py").write_text(ORIGINAL)
    (site / "kopf" / "on.py").write_text("")
    (site / "kopf" / "cli.py").write_text("def main(): ...")
    assert "Both kopf-rs and the original kopf are installed" in import_kopf(site, statement)
