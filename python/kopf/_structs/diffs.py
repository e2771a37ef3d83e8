"""Differences between two objects."""

from __future__ import annotations

import collections.abc
import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

from kopf._compat import StrEnum
from kopf._structs import dicts


class DiffScope(enum.Flag):
    """Whose keys are compared: those of the left side, the right side, or both."""

    RIGHT = enum.auto()
    LEFT = enum.auto()
    FULL = LEFT | RIGHT


class DiffOperation(StrEnum):
    """What happened to a field."""

    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


class DiffItem(NamedTuple):
    """One changed field; equal to a plain tuple of the same values."""

    operation: DiffOperation
    field: dicts.FieldPath
    old: Any
    new: Any

    def __eq__(self, other: object) -> bool:
        return _equal(tuple(self), other)

    def __ne__(self, other: object) -> bool:
        equal = _equal(tuple(self), other)
        return equal if equal is NotImplemented else not equal

    def __repr__(self) -> str:
        return repr(tuple(self))

    @property
    def op(self) -> DiffOperation:
        return self.operation


class Diff(Sequence[DiffItem]):
    """All changed fields of an object: immutable, hashable."""

    def __init__(self, __items: Iterable[DiffItem]) -> None:
        super().__init__()
        self._items = tuple(DiffItem(*item) for item in __items)

    @overload
    def __getitem__(self, item: int) -> DiffItem: ...

    @overload
    def __getitem__(self, item: slice) -> Sequence[DiffItem]: ...

    def __getitem__(self, item: int | slice) -> DiffItem | Sequence[DiffItem]:
        return self._items[item]

    def __iter__(self) -> Iterator[DiffItem]:
        yield from self._items

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return _equal(self._items, other)

    def __ne__(self, other: object) -> bool:
        equal = _equal(self._items, other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return repr(self._items)


def _equal(own: tuple[Any, ...], other: object) -> bool:
    """Compare with any sequence."""
    return own == tuple(other) if isinstance(other, Sequence) else NotImplemented


def reduce_iter(d: Iterable[DiffItem], path: dicts.FieldPath) -> Iterator[DiffItem]:
    """Yield the items of a diff as seen from one field."""
    depth = len(path)
    for op, field, old, new in d:
        field = tuple(field)
        if field[:depth] == tuple(path):
            yield DiffItem(op, field[depth:], old, new)
        elif field == tuple(path[: len(field)]):
            tail = path[len(field) :]
            yield from diff_iter(dicts.resolve(old, tail, None), dicts.resolve(new, tail, None))


def reduce(d: Iterable[DiffItem], path: dicts.FieldPath) -> Diff:
    """Get a diff as seen from one field."""
    return Diff(reduce_iter(d, path))


def diff_iter(
    a: Any,
    b: Any,
    path: dicts.FieldPath = (),
    *,
    scope: DiffScope = DiffScope.FULL,
) -> Iterator[DiffItem]:
    """Yield the differences of two values. Lists are compared as a whole; None means absent."""
    if a == b:
        return
    if a is None:
        yield DiffItem(DiffOperation.ADD, path, a, b)
    elif b is None:
        yield DiffItem(DiffOperation.REMOVE, path, a, b)
    elif isinstance(a, collections.abc.Mapping) and isinstance(b, collections.abc.Mapping):
        for key in _compared_keys(a, b, scope):
            yield from diff_iter(a.get(key), b.get(key), path=(*path, key), scope=scope)
    else:
        yield DiffItem(DiffOperation.CHANGE, path, a, b)


def _compared_keys(
    a: collections.abc.Mapping[Any, Any],
    b: collections.abc.Mapping[Any, Any],
    scope: DiffScope,
) -> Iterator[Any]:
    """Yield keys in the order: added, removed, common."""
    if DiffScope.RIGHT in scope:
        yield from (key for key in b if key not in a)
    if DiffScope.LEFT in scope:
        yield from (key for key in a if key not in b)
    yield from (key for key in a if key in b)


def diff(
    a: Any,
    b: Any,
    path: dicts.FieldPath = (),
    *,
    scope: DiffScope = DiffScope.FULL,
) -> Diff:
    """Get the differences of two values."""
    return Diff(diff_iter(a, b, path=path, scope=scope))


EMPTY = Diff(())
