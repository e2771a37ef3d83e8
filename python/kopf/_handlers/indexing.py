"""Indexes that are made before the operator: for ``kopf.operator(indexers=...)`` and tests.

A running operator puts its own indexes in their places: see ``OperatorIndexers.attach()``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from kopf._handlers import handlers
from kopf._structs import ephemera, ids

_K = TypeVar("_K")
_V = TypeVar("_V")


class Store(ephemera.Store[_V]):
    """The values under one key, by the objects that they come from."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[Any, _V] = {}

    def __repr__(self) -> str:
        return repr(list(self._values.values()))

    def __bool__(self) -> bool:
        return bool(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[_V]:
        return iter(self._values.values())

    def __contains__(self, value: object) -> bool:
        return any(known == value for known in self._values.values())


class Index(ephemera.Index[_K, _V]):
    """Values by keys; empty keys do not exist."""

    def __init__(self) -> None:
        super().__init__()
        self._stores: dict[_K, Store[_V]] = {}

    def __repr__(self) -> str:
        return repr(self._stores)

    def __len__(self) -> int:
        return len(self._stores)

    def __iter__(self) -> Iterator[_K]:
        return iter(self._stores)

    def __getitem__(self, key: _K) -> Store[_V]:
        return self._stores[key]

    def __contains__(self, key: object) -> bool:
        return key in self._stores

    def _replace(self, source: Any, values: Mapping[_K, _V]) -> None:
        """Replace all values of one object."""
        for key in [*self._stores]:
            if key not in values:
                self._stores[key]._values.pop(source, None)
        for key, value in values.items():
            self._stores.setdefault(key, Store())._values[source] = value
        for key in [key for key, store in self._stores.items() if not store]:
            del self._stores[key]


def store_of(values: Iterable[_V]) -> Store[_V]:
    """Make a store that does not belong to an operator."""
    store = Store[_V]()
    store._values.update(enumerate(values))
    return store


def index_of(entries: Mapping[_K, Iterable[_V]]) -> Index[_K, _V]:
    """Make an index that does not belong to an operator."""
    index = Index[_K, _V]()
    index._stores.update({key: store_of(values) for key, values in entries.items()})
    return index


class OperatorIndexer:
    """One index, with the changes that the operator makes."""

    def __init__(self) -> None:
        super().__init__()
        self.index: Any = Index()

    def __repr__(self) -> str:
        return repr(self.index)

    def replace(self, key: Any, obj: object) -> None:
        """Put the result of an indexing function for one object."""
        values = obj if isinstance(obj, Mapping) else {None: obj}
        self.index._replace(key, values)

    def discard(self, key: Any) -> None:
        """Remove all values of one object."""
        self.index._replace(key, {})


class OperatorIndices(Mapping[str, ephemera.Index[Any, Any]]):
    """All indexes of an operator by their names, as they are now."""

    def __init__(self, indexers: OperatorIndexers) -> None:
        super().__init__()
        self._indexers = indexers

    def __len__(self) -> int:
        return len(self._indexers)

    def __iter__(self) -> Iterator[str]:
        return iter([str(key) for key in self._indexers])

    def __getitem__(self, name: str) -> ephemera.Index[Any, Any]:
        index: ephemera.Index[Any, Any] = self._indexers[ids.HandlerId(name)].index
        return index

    def __contains__(self, name: object) -> bool:
        return name in self._indexers


class OperatorIndexers(dict[ids.HandlerId, OperatorIndexer]):
    """All indexes of an operator, with the changes that it makes."""

    def __init__(self) -> None:
        super().__init__()
        self.indices = OperatorIndices(self)

    def ensure(self, handlers: Iterable[handlers.IndexingHandler]) -> None:
        """Make an empty index for every handler."""
        for handler in handlers:
            self[handler.id] = OperatorIndexer()

    def attach(self, indices: Mapping[str, Any]) -> None:
        """Show the indexes of a running operator."""
        for name, index in indices.items():
            indexer = self[ids.HandlerId(name)] = OperatorIndexer()
            indexer.index = index
