"""A pytest plugin to run Kopf's own tests against this package.

Kopf's tests import internal modules. Names that this package has, it provides itself. This plugin
makes stubs for the rest, so that conftest files can be imported, and skips those test files that
import such a name: they test Kopf's insides, not its interface.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import kopf

MISSING = "__missing_in_ours__"


class _StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Provides empty modules for Kopf's internal modules that this package does not have."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        parts = fullname.split(".")
        if parts[0] != "kopf" or len(parts) < 2 or parts[1] not in ("_cogs", "_core", "_kits"):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=len(parts) < 4)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        setattr(module, MISSING, True)


def _add_stub_names(module: types.ModuleType, names: list[str]) -> None:
    for name in names:
        if not hasattr(module, name):
            stub = type(name, (), {MISSING: True})
            setattr(module, name, stub)


def _imports(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Find all imports of Kopf's internal modules, with the imported names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kopf._"):
            yield node.module or "", [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("kopf._"):
                    yield alias.name, []


def _missing(path: pathlib.Path) -> list[str]:
    """Find the internal names that a file imports and that this package does not have."""
    found: list[str] = []
    for module_name, names in _imports(ast.parse(path.read_text(encoding="utf-8"))):
        module = importlib.import_module(module_name)
        if getattr(module, MISSING, False) and not names:
            found.append(module_name)
        for name in names:
            value: Any = getattr(module, name, None)
            if value is None:
                try:
                    value = importlib.import_module(f"{module_name}.{name}")
                except ImportError:
                    value = None
            if value is None or getattr(value, MISSING, False):
                found.append(f"{module_name}.{name}")
    return found


def is_public_only(path: pathlib.Path) -> bool:
    """Whether all internal names that a file imports are also exported by ``kopf``."""
    public = {*kopf.__all__, "harmonize_naming", "adjust_namespace", "KopfRunner"}
    imported = _imports(ast.parse(path.read_text(encoding="utf-8")))
    return all(names and set(names) <= public for _, names in imported)


class _Skipped(pytest.File):
    """A test file that is not collected."""

    def collect(self) -> list[pytest.Item]:
        return []


def _prepare(root: pathlib.Path) -> None:
    """Make stubs for everything that conftest files import; they are loaded very early."""
    sys.meta_path.append(_StubFinder())
    for path in root.glob("tests/**/conftest.py"):
        for module_name, names in _imports(ast.parse(path.read_text(encoding="utf-8"))):
            _add_stub_names(importlib.import_module(module_name), names)


_prepare(pathlib.Path.cwd())


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SKIPPED] = []


_SKIPPED: pytest.StashKey[list[tuple[str, list[str]]]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--public-only", action="store_true", help="only files that import public names"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collect_file(file_path: pathlib.Path, parent: pytest.Collector) -> Any:
    if file_path.suffix != ".py" or not file_path.name.startswith("test_"):
        return None
    missing = _missing(file_path)
    only = parent.config.getoption("--public-only")
    if not missing and (not only or is_public_only(file_path)):
        return None
    parent.config.stash[_SKIPPED].append((str(file_path), missing))
    return _Skipped.from_parent(parent, path=file_path)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makemodule(module_path: pathlib.Path, parent: Any) -> Any:
    result = yield
    skipped = {path for path, _ in parent.config.stash[_SKIPPED]}
    return None if str(module_path) in skipped else result


def pytest_terminal_summary(terminalreporter: Any) -> None:
    skipped = terminalreporter.config.stash[_SKIPPED]
    terminalreporter.write_line(f"{len(skipped)} files need Kopf's insides or were not selected")
    if terminalreporter.config.getoption("verbose") > 0:
        for path, missing in skipped:
            terminalreporter.write_line(f"  {path}: {', '.join(missing)}")
