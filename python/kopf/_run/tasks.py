"""Tasks of the running loop."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

Future = asyncio.Future
Task = asyncio.Task


async def all_tasks(*, ignored: Collection[Task[Any]] = frozenset()) -> Collection[Task[Any]]:
    """Get all tasks of the loop but the current one and the ignored ones."""
    current = asyncio.current_task()
    return {task for task in asyncio.all_tasks() if task is not current and task not in ignored}
