"""The event loop of the command line."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def proper_loop(
    suggested_loop: asyncio.AbstractEventLoop | None = None,
) -> Iterator[asyncio.AbstractEventLoop | None]:
    """Get the given loop, or a loop of ``uvloop`` if it is installed, or None for the default."""
    if suggested_loop is not None:
        yield suggested_loop
        return
    try:
        import uvloop  # pyright: ignore[reportMissingImports]
    except ImportError:
        yield None
        return
    if sys.version_info >= (3, 11):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            yield runner.get_loop()
    else:
        loop = uvloop.new_event_loop()
        try:
            yield loop
        finally:
            loop.close()
