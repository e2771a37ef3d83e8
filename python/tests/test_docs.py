"""Every piece of Python in the book runs: its handlers can be declared, and its tests pass."""

from __future__ import annotations

import inspect
import pathlib
import re
from typing import Any

import pytest

import kopf
from kopf._handlers.native import describe_handler

ROOT = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [*(ROOT / "docs" / "src").rglob("*.md"), ROOT / "README.md", ROOT / "python" / "README.md"]
BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(ROOT)}-{index}")
    for page in PAGES
    if page.exists()
    for index, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
    if "import kopf" in block and "{{#include" not in block
]
TESTS = [block for block in BLOCKS if "async def test_" in str(block.values[0])]


@pytest.mark.parametrize("block", BLOCKS)
def test_code_of_the_book_declares_handlers(block: str) -> None:
    before = kopf.get_default_registry()
    registry = kopf.OperatorRegistry()
    kopf.set_default_registry(registry)
    try:
        exec(compile(block, "book", "exec", dont_inherit=True), {"__name__": "book"})
    finally:
        kopf.set_default_registry(before)
    groups = (registry._activities, registry._changing, registry._spawning, registry._webhooks)
    for group in (*groups, registry._watching, registry._indexing):
        for handler in group.get_all_handlers():
            assert describe_handler(handler)["id"] == handler.id


@pytest.mark.asyncio
@pytest.mark.parametrize("block", TESTS)
async def test_tests_of_the_book_pass(block: str, request: pytest.FixtureRequest) -> None:
    module: dict[str, Any] = {"__name__": "book"}
    exec(compile(block, "book", "exec", dont_inherit=True), module)
    for name in [name for name in module if name.startswith("test_")]:
        parameters = inspect.signature(module[name]).parameters
        await module[name](**{it: request.getfixturevalue(it) for it in parameters})


def test_the_book_has_python() -> None:
    assert len(BLOCKS) >= 12
    assert len(TESTS) >= 4
