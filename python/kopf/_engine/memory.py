"""Free memory of the process, given back to the system.

When the engine lists many objects, and in bursts, it needs much memory for a short time. The
allocator of glibc keeps what is freed, because it lies between what is still in use.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

_BUSY_SECONDS = 0.1


def _trim() -> None:
    import ctypes  # operators that are never busy do not need it

    with contextlib.suppress(AttributeError):  # other libraries than glibc have no such function
        ctypes.CDLL(None).malloc_trim(0)


class Trimmer:
    """Gives memory back when the process has been busy, and is at rest again."""

    def __init__(
        self,
        clock: Callable[[], float] = time.process_time,
        trim: Callable[[], None] = _trim,
    ) -> None:
        super().__init__()
        self._clock = clock
        self._trim = trim
        self._last = clock()
        self._was_busy = False

    def check(self) -> None:
        """Look at the processor time since the last call; to be called about once per second."""
        now = self._clock()
        is_busy = now - self._last > _BUSY_SECONDS
        self._last = now
        if self._was_busy and not is_busy:
            self._trim()
        self._was_busy = is_busy
