"""Filters of handlers."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, TypeAlias

from kopf._handlers import callbacks


class MetaFilterToken(enum.Enum):
    """Marks for filters of labels, annotations and fields."""

    PRESENT = enum.auto()
    ABSENT = enum.auto()


ABSENT = MetaFilterToken.ABSENT
"""The key must be absent."""

PRESENT = MetaFilterToken.PRESENT
"""The key must be present, with any value."""

MetaFilter = Mapping[str, str | MetaFilterToken | callbacks.MetaFilterFn]
"""A filter of labels or annotations."""

ValueFilter: TypeAlias = Any | MetaFilterToken | callbacks.MetaFilterFn | None
"""A filter of the value of a field."""
