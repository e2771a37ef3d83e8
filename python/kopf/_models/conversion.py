"""From objects to instances of models, and back."""

from __future__ import annotations

import base64
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import types
import typing
import uuid
from collections.abc import Mapping
from typing import Any

from kopf._models.flavours import Flavour, flavour_of, hints_of, is_model, name_of

_LISTS = (list, set, frozenset, tuple, collections.abc.Sequence, collections.abc.Iterable)
_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def alias_of(field: dataclasses.Field[Any]) -> str:
    """Get the name of a field in objects: ``field(metadata={"alias": "minReplicas"})``."""
    return str(field.metadata.get("alias", field.name))


def default_of(field: dataclasses.Field[Any]) -> tuple[bool, Any]:
    """Get whether a field has a default, and the default."""
    if field.default is not dataclasses.MISSING:
        return True, field.default
    if field.default_factory is not dataclasses.MISSING:
        return True, field.default_factory()
    return False, None


def decode(tp: Any, value: Any, place: str = "") -> Any:
    """Make an instance of a type from JSON; raises ``ValueError`` for what does not fit.

    Fields that the type does not know are ignored.
    """
    flavour = flavour_of(tp)
    if flavour is Flavour.PYDANTIC:
        from pydantic import TypeAdapter

        return TypeAdapter(tp).validate_python(_plain(value))
    if flavour is Flavour.MSGSPEC:
        import msgspec

        return msgspec.convert(_plain(value), tp)
    if flavour is Flavour.DATACLASS:
        return _decode_dataclass(tp, value, place)
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if origin is typing.Annotated:
        return decode(args[0], value, place)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(args, value, place)
    if origin is typing.Literal:
        return _check(value in args, value, place, "one of " + ", ".join(map(repr, args)))
    if tp in _LISTS or origin in _LISTS:
        return _decode_list(origin or tp, args, value, place)
    if tp in _MAPS or origin in _MAPS:
        _check(isinstance(value, Mapping), value, place, "an object")
        item = args[1] if args else Any
        return {key: decode(item, one, f"{place}.{key}") for key, one in value.items()}
    return _decode_simple(tp, value, place)


def _decode_dataclass(tp: Any, value: Any, place: str) -> Any:
    _check(isinstance(value, Mapping), value, place, "an object")
    hints = hints_of(tp)
    kwargs = {}
    for field in dataclasses.fields(tp):
        name = alias_of(field)
        if not field.init:
            continue
        if name in value:
            kwargs[field.name] = decode(hints[field.name], value[name], f"{place}.{name}")
        elif not default_of(field)[0]:
            raise ValueError(f"{(place + '.' + name).lstrip('.')} is missing")
    return tp(**kwargs)


def _decode_union(args: tuple[Any, ...], value: Any, place: str) -> Any:
    if value is None and type(None) in args:
        return None
    errors = []
    for arg in args:
        if arg is not type(None):
            try:
                return decode(arg, value, place)
            except ValueError as e:
                errors.append(str(e))
    raise ValueError("; ".join(errors))


def _decode_list(kind: Any, args: tuple[Any, ...], value: Any, place: str) -> Any:
    _check(isinstance(value, (list, tuple)), value, place, "a list")
    fixed = kind is tuple and args and args[-1] is not Ellipsis
    if fixed:
        _check(len(value) == len(args), value, place, f"{len(args)} items")
    types_ = args if fixed else [args[0] if args else Any] * len(value)
    items = [
        decode(tp, one, f"{place}[{i}]")
        for i, (tp, one) in enumerate(zip(types_, value, strict=True))
    ]
    return kind(items) if kind in (set, frozenset, tuple) else items


def _decode_simple(tp: Any, value: Any, place: str) -> Any:
    if tp is Any or tp is object or typing.is_typeddict(tp):
        return _plain(value)
    if tp is bool or tp is str:
        return _check(isinstance(value, tp), value, place, "a text" if tp is str else "a boolean")
    if tp is int:
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return _check(is_whole, value, place, "a whole number")
    if tp is float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return float(_check(is_number, value, place, "a number"))
    if tp is type(None):
        return _check(value is None, value, place, "null")
    _check(isinstance(value, (str, int, float)), value, place, name_of(tp))
    try:
        if tp is datetime.datetime:
            return datetime.datetime.fromisoformat(str(value).replace("Z", "+00:00"))
        if tp is datetime.date:
            return datetime.date.fromisoformat(str(value))
        if tp is bytes:
            return base64.b64decode(str(value), validate=True)
        if tp in (decimal.Decimal, uuid.UUID):
            return tp(str(value))
        return tp(value)
    except (ValueError, TypeError, decimal.DecimalException) as e:
        raise ValueError(f"{place.lstrip('.')}: {e}") from None


def _check(condition: bool, value: Any, place: str, wanted: str) -> Any:
    if not condition:
        prefix = f"{place.lstrip('.')}: " if place else ""
        raise ValueError(f"{prefix}{value!r} is not {wanted}")
    return value


def _plain(value: Any) -> Any:
    """Get plain dicts and lists of any mappings and sequences."""
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


def encode(value: Any) -> Any:
    """Make JSON from instances of models, and of what they contain."""
    if is_model(value):
        return _encode_model(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, (datetime.date, uuid.UUID, decimal.Decimal)):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return {str(key): encode(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(one) for one in value]
    if isinstance(value, (set, frozenset)):
        return sorted(encode(one) for one in value)
    return value


def _encode_model(value: Any) -> Any:
    flavour = flavour_of(type(value))
    if flavour is Flavour.PYDANTIC:
        from pydantic import TypeAdapter

        return TypeAdapter(type(value)).dump_python(value, mode="json", by_alias=True)
    if flavour is Flavour.MSGSPEC:
        import msgspec

        return msgspec.to_builtins(value)
    return {alias_of(f): encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
