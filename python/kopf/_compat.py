"""Small differences between versions of Python."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 11):
    from enum import StrEnum as StrEnum
else:
    import enum

    class StrEnum(str, enum.Enum):
        """Strings with names, as in Python 3.11."""

        def __str__(self) -> str:
            return str(self.value)


if TYPE_CHECKING or sys.version_info >= (3, 11):
    LoggerAdapter = logging.LoggerAdapter[Any]
else:
    LoggerAdapter = logging.LoggerAdapter
