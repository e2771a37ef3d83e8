"""Changes that a handler asks for: a merge patch plus functions."""

from __future__ import annotations

import collections.abc
import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypedDict, cast

from kopf._structs import bodies, dicts

JSONPatchOp = Literal["add", "replace", "remove", "test", "move", "copy"]


class JSONPatchItem(TypedDict, total=False):
    """One operation of a JSON patch (the key ``from`` cannot be declared)."""

    op: JSONPatchOp
    path: str
    value: Any | None


JSONPatch = list[JSONPatchItem]

PatchFn = Callable[[bodies.RawBody], None]
"""A function that changes a body in place; it can be called several times."""


_Strings = dicts.MutableMappingView[str, str | None]


class MetaPatch(dicts.MutableMappingView[str, Any]):
    """Changes of the metadata."""

    def __init__(self, __src: Patch) -> None:
        super().__init__(__src, "metadata")
        self._annotations: _Strings = dicts.MutableMappingView(self, "annotations")
        self._labels: _Strings = dicts.MutableMappingView(self, "labels")

    @property
    def annotations(self) -> _Strings:
        return self._annotations

    @property
    def labels(self) -> _Strings:
        return self._labels


class SpecPatch(dicts.MutableMappingView[str, Any]):
    """Changes of the spec."""

    def __init__(self, __src: Patch) -> None:
        super().__init__(__src, "spec")


class StatusPatch(dicts.MutableMappingView[str, Any]):
    """Changes of the status."""

    def __init__(self, __src: Patch) -> None:
        super().__init__(__src, "status")


class Patch(dict[str, Any]):
    """A merge patch as a dict (None deletes a key), and functions on top of it."""

    def __init__(
        self,
        src: dict[str, Any] | None = None,
        /,
        body: bodies.Body | None = None,
        fns: Iterable[PatchFn] = (),
    ) -> None:
        super().__init__(src or {})
        self._original = body
        self._fns: list[PatchFn] = [*(src.fns if isinstance(src, Patch) else ()), *fns]

    def __repr__(self) -> str:
        texts = [super().__repr__()] if len(self) else []
        texts += [f"fns={self._fns!r}"] if self._fns else []
        return f"{type(self).__name__}({', '.join(texts)})"

    def __bool__(self) -> bool:
        return len(self) > 0 or len(self._fns) > 0

    @property
    def fns(self) -> list[PatchFn]:
        """The functions, in the order in which they are applied."""
        return self._fns

    def clear(self) -> None:
        del self._fns[:]
        super().clear()

    # The views are made on first use: most calls use none of them.
    _meta: MetaPatch | None = None
    _spec: SpecPatch | None = None
    _status: StatusPatch | None = None

    @property
    def metadata(self) -> MetaPatch:
        if self._meta is None:
            self._meta = MetaPatch(self)
        return self._meta

    @property
    def meta(self) -> MetaPatch:
        return self.metadata

    @property
    def spec(self) -> SpecPatch:
        if self._spec is None:
            self._spec = SpecPatch(self)
        return self._spec

    @property
    def status(self) -> StatusPatch:
        if self._status is None:
            self._status = StatusPatch(self)
        return self._status

    def as_json_patch(
        self, body: bodies.Body | bodies.RawBody | Mapping[str, Any] | None = None
    ) -> JSONPatch:
        """Get the operations that turn the body (or the original one) into the patched one.

        Changes that change nothing are left out.
        """
        base: Any = body if body is not None else self._original
        if not self:
            return []
        if base is None:
            raise ValueError("Cannot build a JSON-patch without the original body as a reference.")
        before = dict(base)
        after = copy.deepcopy(before)
        merge(after, self)
        for fn in self._fns:
            fn(after)  # type: ignore[arg-type]
        import jsonpatch  # slow to import, rarely needed

        ops: Any = jsonpatch.JsonPatch.from_diff(before, after).patch
        return cast(JSONPatch, ops)


def merge(body: dict[str, Any], patch: Mapping[str, Any], path: dicts.FieldPath = ()) -> None:
    """Apply a merge patch to a dict in place."""
    for key, value in patch.items():
        field = (*path, key)
        if value is None:
            dicts.remove(body, field)
        elif isinstance(value, collections.abc.Mapping):
            merge(body, value, field)
        else:
            dicts.ensure(body, field, value)
