"""What exists in memory only: memos and indexes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Generic, NewType, TypeVar

AnyMemo = NewType("AnyMemo", object)
"""A memo of any class."""


class Memo(dict[Any, Any]):
    """A dict with attribute access, for values that handlers keep per object.

    >>> memo = Memo()
    >>> memo.counter = 1
    >>> memo['counter']
    1
    """

    def __getattr__(self, key: str) -> Any:
        try:
            return self[key]
        except KeyError as e:
            raise AttributeError(str(e)) from None

    def __delattr__(self, key: str) -> None:
        if key not in self:
            raise AttributeError(repr(key))
        del self[key]

    def __setattr__(self, key: str, value: Any) -> None:
        self[key] = value


_K = TypeVar("_K")
_V = TypeVar("_V")


class Store(Collection[_V], Generic[_V]):
    """All values under one key of an index. The order is not promised; duplicates are kept."""


class Index(Mapping[_K, Store[_V]], Generic[_K, _V]):
    """An index: keys with the values that indexing functions returned for all objects."""


Indices = Mapping[str, Index[Any, Any]]
"""All indexes of an operator, by the ids of their handlers."""
