"""Nested fields in dicts: parsing of field names, reading, writing, views."""

from __future__ import annotations

import collections.abc
import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Generic, TypeAlias, TypeVar, cast

from kopf._structs import thirdparty

FieldPath: TypeAlias = tuple[str, ...]
"""A field as a sequence of keys."""

FieldSpec: TypeAlias = str | FieldPath | list[str] | None
"""A field as users write it: ``"spec.field"``, ``("spec", "field")``, or a list."""

_T = TypeVar("_T")
_K = TypeVar("_K", bound=str)
_V = TypeVar("_V")


class _Unset(enum.Enum):
    """Marks an argument that was not given."""

    token = enum.auto()


_UNSET = _Unset
_ATOMIC = (tuple, list, set, frozenset, str, bytes)


def parse_field(field: FieldSpec) -> FieldPath:
    """Convert a field in any notation to a tuple of keys; None is the root."""
    if field is None:
        return ()
    if isinstance(field, str):
        return tuple(field.split("."))
    if isinstance(field, (list, tuple)):
        return tuple(field)
    raise ValueError(f"Field must be either a str, or a list/tuple. Got {field!r}")


def _is_model(value: object) -> bool:
    return isinstance(value, (thirdparty.KubernetesModelSync, thirdparty.KubernetesModelAsync))


def resolve(
    d: Mapping[Any, Any] | None,
    field: FieldSpec,
    default: _T | _Unset = _Unset.token,
) -> Any | _T:
    """Read a nested field.

    With a default, absent keys and values that are no mappings give the default.
    Without it, an absent key is a KeyError, and a key of a non-mapping is a TypeError.
    """
    value: Any = d
    for key in field if type(field) is tuple else parse_field(field):
        if not isinstance(value, collections.abc.Mapping):
            if isinstance(default, _Unset):
                raise TypeError(f"The structure is not a dict with field {key!r}: {value!r}")
            return default
        try:
            value = value[key]
        except KeyError:
            if isinstance(default, _Unset):
                raise
            return default
    return value


def resolve_obj(
    d: object,
    field: FieldSpec,
    default: _T | _Unset = _Unset.token,
) -> Any | _T:
    """Read a nested field in a mix of dicts and objects of client libraries."""
    value: Any = d
    for key in parse_field(field):
        try:
            if isinstance(value, collections.abc.Mapping):
                value = value[key]
            elif _is_model(value):
                value = getattr(value, _attribute_of(value, key))
            elif isinstance(value, _ATOMIC):
                if isinstance(default, _Unset):
                    raise TypeError(f"The structure has no field {key!r}: {value!r}")
                return default
            else:
                value = getattr(value, key)
        except (AttributeError, KeyError):
            if isinstance(default, _Unset):
                raise
            return default
    return value


def _attribute_of(model: object, key: str) -> str:
    """Translate a JSON key to the attribute of a generated model."""
    names: Mapping[str, str] = getattr(model, "attribute_map", None) or {}
    return next((attr for attr, json_key in names.items() if json_key == key), key)


def ensure(d: MutableMapping[Any, Any], field: FieldSpec, value: Any) -> None:
    """Write a nested field, with all absent parents."""
    path = parse_field(field)
    if not path:
        raise ValueError("Setting a root of a dict is impossible. Provide the specific fields.")
    *parents, last = path
    target = d
    for key in parents:
        if key not in target:
            target[key] = {}
        target = target[key]
    target[last] = value


def remove(d: MutableMapping[Any, Any], field: FieldSpec) -> None:
    """Remove a nested field if it is there, and the parents that are empty then."""
    path = parse_field(field)
    if not path:
        raise ValueError("Removing a root of a dict is impossible. Provide a specific field.")
    chain: list[MutableMapping[Any, Any]] = [d]
    try:
        for key in path[:-1]:
            chain.append(chain[-1][key])
        del chain[-1][path[-1]]
    except KeyError:
        pass  # it is absent already
    for depth in range(len(chain) - 1, 0, -1):
        if chain[depth] == {}:
            del chain[depth - 1][path[depth - 1]]


def cherrypick(
    src: Mapping[Any, Any],
    dst: MutableMapping[Any, Any],
    fields: Iterable[FieldSpec] | None,
    picker: Callable[[_T], _T] | None = None,
) -> None:
    """Copy some fields from one dict to another; skip those that are absent."""
    for field in fields or ():
        try:
            value = resolve(src, field)
        except KeyError:
            continue
        ensure(dst, field, value if picker is None else picker(value))


def walk(
    objs: _T | Iterable[_T] | Iterable[_T | Iterable[_T]],
    *,
    nested: Iterable[FieldSpec] | None = None,
) -> Iterator[_T]:
    """Flatten objects: one object, or any nesting of iterables of objects.

    Mappings and models are objects. With ``nested``, these fields of each object follow it.
    """
    found: Any = objs
    if found is None:
        return
    if isinstance(found, thirdparty.PykubeObject):
        yield from walk(found.obj, nested=nested)  # type: ignore[arg-type]
    elif _is_model(found) or isinstance(found, collections.abc.Mapping):
        yield cast(_T, found)
        read = resolve_obj if _is_model(found) else resolve
        for field in nested or ():
            try:
                child = read(found, parse_field(field))
            except (AttributeError, KeyError):
                continue
            yield child
    elif isinstance(found, collections.abc.Iterable):
        for obj in found:
            yield from walk(obj, nested=nested)
    else:
        yield found


_EMPTY: Mapping[Any, Any] = {}


class MappingView(Mapping[_K, _V], Generic[_K, _V]):
    """A read-only view of a nested dict; an absent dict looks like an empty one."""

    _src: Mapping[Any, Any]

    def __init__(self, __src: Mapping[Any, Any], __path: FieldSpec = None) -> None:
        super().__init__()
        self._src = __src
        self._path = parse_field(__path)

    def __getitem__(self, item: _K) -> _V:
        return resolve(self._src, (*self._path, item))  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Any]:
        return iter(resolve(self._src, self._path, _EMPTY))

    def __len__(self) -> int:
        return len(resolve(self._src, self._path, _EMPTY))

    def __repr__(self) -> str:
        return repr({**self})


class MutableMappingView(MappingView[_K, _V], MutableMapping[_K, _V], Generic[_K, _V]):
    """A view of a nested dict that creates the dict when a value is set."""

    def __delitem__(self, item: _K) -> None:
        del resolve(self._src, self._path)[item]

    def __setitem__(self, item: _K, value: _V) -> None:
        ensure(cast("MutableMapping[Any, Any]", self._src), (*self._path, item), value)


class ReplaceableMappingView(MappingView[_K, _V], Generic[_K, _V]):
    """A view whose source can be replaced; views on top of it see the new source."""

    def _replace_from(self, __src: MappingView[_K, _V]) -> None:
        self._src = __src._src

    def _replace_with(self, __src: Mapping[_K, _V]) -> None:
        self._src = __src
