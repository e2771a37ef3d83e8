"""Free memory of the process, given back to the system.

When the engine lists many objects, and in bursts, it needs much memory for a short time. The
allocator of glibc keeps what is freed, because it lies between what is still in use.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

_BUSY = 0.1
_IDLE = 0.01
"""The processor time between two checks, in seconds: above the first, below the second."""

_MUCH = 0.5
_LITTLE = 0.05
"""How much work there must have been since the last time: while there is more of it, and after."""

_TIMES = (1, 3, 12)
"""After how many checks at rest: connections of a burst are closed later than its work ends."""


def _trim() -> None:
    import ctypes  # operators that are never busy do not need it

    with contextlib.suppress(AttributeError):  # other libraries than glibc have no such function
        ctypes.CDLL(None).malloc_trim(0)


class Trimmer:
    """Gives memory back when the process has worked: at rest, or from time to time if it is slow.

    Work is slow if the server is: there may be much of it, and never much in one second.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.process_time,
        trim: Callable[[], None] = _trim,
    ) -> None:
        super().__init__()
        self._clock = clock
        self._trim = trim
        self._last = clock()
        self._work = 0.0
        self._rests = max(_TIMES)
        self._idles = max(_TIMES)

    def check(self) -> None:
        """Look at the processor time since the last call; to be called about once per second."""
        now = self._clock()
        spent, self._last = now - self._last, now
        self._work += spent
        self._rests = 0 if spent > _BUSY else self._rests + 1
        self._idles = self._idles + 1 if spent < _IDLE else 0
        is_over = self._idles in _TIMES and self._work > _LITTLE
        is_slow = self._rests > 0 and self._work > _MUCH
        if self._rests in _TIMES or is_over or is_slow:
            self._trim()
            self._last = self._clock()  # this is no work
            self._work = 0.0
