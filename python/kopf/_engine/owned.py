"""The children of an object, as the engine has seen them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kopf._handlers import execution, family
from kopf._structs import bodies

if TYPE_CHECKING:
    from kopf import _native


class Owned(Mapping[Any, Sequence[bodies.Body]]):
    """The children that an object has, by their kinds as the handler has declared them.

    ``owned["pods"]`` are those of one kind, ordered by name. They come from one watch of all
    children in the cluster and cost no request. They do not change while the handler runs;
    :meth:`now` has those of later moments, for daemons.
    """

    def __init__(self, kinds: Sequence[family.ChildSpec], call: _native.Call) -> None:
        super().__init__()
        self._kinds = {kind: number for number, kind in enumerate(kinds)}
        self._call = call
        self._seen: dict[Any, Sequence[bodies.Body]] = {}

    def __getitem__(self, kind: family.ChildSpec) -> Sequence[bodies.Body]:
        if kind not in self._seen:
            if kind not in self._kinds:
                known = ", ".join(map(repr, self._kinds))
                raise KeyError(f"the handler does not look at children {kind!r}, only at {known}")
            children = self._call.children(self._kinds[kind])
            if children is None:
                raise execution.TemporaryError(
                    f"The children {kind!r} could not be listed yet.", delay=1
                )
            self._seen[kind] = tuple(bodies.Body(child) for child in children)
        return self._seen[kind]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self._kinds)!r})"

    def now(self) -> Owned:
        """Get the children as they are now."""
        return Owned(tuple(self._kinds), self._call)


def kwargs_of(handler: execution.Handler, call: _native.Call, cause: Any) -> dict[str, Any]:
    """Get the kwargs about children, for handlers that look at them."""
    kinds = family.children_of(handler)
    if not kinds:
        return {}
    kwargs: dict[str, Any] = {"owned": Owned(kinds, call)}
    if isinstance(handler, family.ObserveHandler):
        kwargs["patch"] = cause.patch
    return kwargs
