"""Flags of asyncio, threading and concurrent.futures, handled in the same way."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from typing import Any

Flag = asyncio.Future[Any] | asyncio.Event | concurrent.futures.Future[Any] | threading.Event

_POLLING = 0.05


async def wait_flag(flag: Flag | None) -> Any:
    """Wait until a flag is raised, and get its value if it has one.

    An event of threads is polled: a thread that waits for it would outlive the operator.
    """
    if flag is None:
        return None
    if isinstance(flag, asyncio.Future):
        return await asyncio.shield(flag)
    if isinstance(flag, asyncio.Event):
        return await flag.wait()
    if isinstance(flag, concurrent.futures.Future):
        return await asyncio.shield(asyncio.wrap_future(flag))
    if isinstance(flag, threading.Event):
        while not flag.is_set():
            await asyncio.sleep(_POLLING)
        return True
    raise TypeError(f"Unsupported type of a flag: {flag!r}")


async def raise_flag(flag: Flag | None) -> None:
    """Raise a flag."""
    if flag is None:
        return
    if isinstance(flag, (asyncio.Future, concurrent.futures.Future)):
        flag.set_result(None)
    elif isinstance(flag, (asyncio.Event, threading.Event)):
        flag.set()
    else:
        raise TypeError(f"Unsupported type of a flag: {flag!r}")


def check_flag(flag: Flag | None) -> bool | None:
    """Whether a flag is raised; None if there is no flag."""
    if flag is None:
        return None
    if isinstance(flag, (asyncio.Future, concurrent.futures.Future)):
        return flag.done()
    if isinstance(flag, (asyncio.Event, threading.Event)):
        return flag.is_set()
    raise TypeError(f"Unsupported type of a flag: {flag!r}")
