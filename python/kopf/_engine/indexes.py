"""Indexes: the engine keeps the entries of objects, Python keeps its own keys.

Copies that are made deeply, or sent to other processes, are those of ``kopf._handlers.indexing``:
they keep the entries as they were.
"""

from __future__ import annotations

import collections.abc
import itertools
import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kopf._handlers import indexing
from kopf._structs import ephemera

if TYPE_CHECKING:
    from kopf import _native

_PRUNED_AT = 1000


class Store(ephemera.Store[Any]):
    """The values under one key: always the current ones, also if operators keep the store."""

    def __init__(self, native: _native.NativeIndex, number: int) -> None:
        super().__init__()
        self._native = native
        self._number = number

    def __repr__(self) -> str:
        return repr(self._values())

    def __bool__(self) -> bool:
        return self._native.count(self._number) > 0

    def __len__(self) -> int:
        return self._native.count(self._number)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values())

    def __contains__(self, value: object) -> bool:
        return value in self._values()

    def __copy__(self) -> Store:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return indexing.store_of, (self._values(),)

    def _values(self) -> list[Any]:
        return self._native.get(self._number)


class Index(ephemera.Index[Any, Any]):
    """An index with any hashable keys: each key has a number, by which the engine knows it."""

    def __init__(self, native: _native.NativeIndex) -> None:
        super().__init__()
        self._native = native
        self._numbers: dict[Any, int] = {}
        self._keys: dict[int, Any] = {}
        self._stores: weakref.WeakValueDictionary[int, Store] = weakref.WeakValueDictionary()
        self._next = itertools.count(1)
        self._limit = _PRUNED_AT

    def __repr__(self) -> str:
        return repr({key: self[key] for key in self})

    def __bool__(self) -> bool:
        return bool(self._native.keys())

    def __len__(self) -> int:
        return len(self._native.keys())

    def __iter__(self) -> Iterator[Any]:
        return iter([self._keys[number] for number in self._native.keys()])

    def __contains__(self, key: object) -> bool:
        number = self._numbers.get(key)
        return number is not None and self._native.count(number) > 0

    def __getitem__(self, key: Any) -> Store:
        number = self._numbers.get(key)
        if number is None or not self._native.count(number):
            raise KeyError(key)
        store = self._stores.get(number)
        if store is None:
            store = self._stores[number] = Store(self._native, number)
        return store

    def __copy__(self) -> Index:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return indexing.index_of, ({key: list(store) for key, store in self.items()},)

    def entries(self, result: object) -> list[tuple[int, Any]] | None:
        """Convert the result of an indexing function; None keeps the former entries."""
        if result is None:
            return None
        if isinstance(result, collections.abc.Mapping):
            return [(self._number(key), value) for key, value in result.items()]
        return [(self._number(None), result)]

    def _number(self, key: Any) -> int:
        number = self._numbers.get(key)
        if number is None:
            self._prune()
            number = next(self._next)
            self._numbers[key] = number
            self._keys[number] = key
        return number

    def _prune(self) -> None:
        """Forget keys without values, now and then."""
        if len(self._keys) < self._limit:
            return
        used = set(self._native.keys())
        for number in [number for number in self._keys if number not in used]:
            del self._numbers[self._keys.pop(number)]
        self._limit = max(_PRUNED_AT, 2 * len(self._keys))


Indices = Mapping[str, Index]
