"""Settings per resource."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Generic, TypeVar, cast

from kopf._structs import references

_V = TypeVar("_V")

SelectorKey = (
    str
    | references.Marker
    | tuple[str, str | references.Marker]
    | tuple[str, str, str | references.Marker]
    | Callable[[references.Resource], bool]
)
"""A selector as it is written in the decorators."""


def _selector(key: object) -> references.Selector:
    """Convert a key in any notation to a selector."""
    if isinstance(key, references.Selector):
        return key
    if isinstance(key, tuple):
        return references.Selector(*key)
    if isinstance(key, (str, references.Marker)) or callable(key):
        return references.Selector(cast(Any, key))
    raise TypeError(f"Unsupported selector type: {key!r}")


class SelectorMapping(MutableMapping[Any, _V], Generic[_V]):
    """Values by selectors; ``mapping['kopf.dev', 'v1', 'kopfexamples'] = ...`` works too."""

    def __init__(self, items: Mapping[references.Selector, _V] | None = None) -> None:
        super().__init__()
        self._items: dict[references.Selector, _V] = dict(items or {})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._items!r})"

    def __setitem__(self, key: SelectorKey | references.Selector, value: _V) -> None:
        self._items[_selector(key)] = value

    def __delitem__(self, key: SelectorKey | references.Selector) -> None:
        del self._items[_selector(key)]

    def __getitem__(self, key: SelectorKey | references.Selector) -> _V:
        return self._items[_selector(key)]

    def __contains__(self, key: object) -> bool:
        return _selector(key) in self._items

    def __iter__(self) -> Iterator[references.Selector]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def collect(self, resource: references.Resource) -> list[_V]:
        """Get the values of all selectors that match a resource."""
        return [value for selector, value in self._items.items() if selector.check(resource)]
