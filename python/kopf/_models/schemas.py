"""Schemas of models, as definitions of custom resources need them: without references."""

from __future__ import annotations

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

from kopf._models.conversion import alias_of, default_of, encode
from kopf._models.flavours import Flavour, flavour_of, hints_of, name_of
from kopf._models.structural import ANYTHING, to_structural

_SIMPLE: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number", "format": "double"},
    bytes: {"type": "string", "format": "byte"},
    decimal.Decimal: {"type": "string"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    uuid.UUID: {"type": "string", "format": "uuid"},
}
_MARKERS = [getattr(typing, name) for name in ("Required", "NotRequired") if hasattr(typing, name)]
"""Marks of fields; Python 3.10 does not have them."""

_LISTS = (list, set, frozenset, tuple, collections.abc.Sequence, collections.abc.Iterable)
_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def schema_of(tp: Any, place: str, parents: tuple[Any, ...] = ()) -> dict[str, Any]:
    """Make the schema of a type.

    The place, such as ``Site.spec``, is for errors: ``TypeError`` for what no schema can describe.
    """
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if origin is typing.Annotated:
        schema = schema_of(args[0], place, parents)
        for extra in args[1:]:
            schema = schema | dict(extra) if isinstance(extra, Mapping) else schema
        return schema
    if tp is Any or tp is object:
        return dict(ANYTHING)
    if tp in _SIMPLE:
        return dict(_SIMPLE[tp])
    if origin in (typing.Union, types.UnionType):
        return _union(args, place, parents)
    if origin is typing.Literal:
        return _choice(list(args), place)
    if origin in _MARKERS:
        return schema_of(args[0], place, parents)
    if tp in _LISTS or origin in _LISTS:
        return _list(args, place, parents)
    if tp in _MAPS or origin in _MAPS:
        return _map(args, place, parents)
    if isinstance(tp, type) and issubclass(tp, enum.Enum):
        return _choice([member.value for member in tp], place)
    if isinstance(tp, type):
        return _class(tp, place, parents)
    raise TypeError(f"{place}: the type {name_of(tp)} cannot be in a schema")


def _class(tp: type, place: str, parents: tuple[Any, ...]) -> dict[str, Any]:
    flavour = flavour_of(tp)
    if tp in parents:
        raise TypeError(f"{place}: {name_of(tp)} contains itself, which no definition can describe")
    if flavour is Flavour.PYDANTIC:
        from pydantic import TypeAdapter

        return to_structural(TypeAdapter(tp).json_schema(by_alias=True), place)
    if flavour is Flavour.MSGSPEC:
        import msgspec

        return to_structural(msgspec.json.schema(tp), place)
    if flavour is Flavour.DATACLASS:
        return _dataclass(tp, place, (*parents, tp))
    if typing.is_typeddict(tp):
        return _typed_dict(tp, place, (*parents, tp))
    for base, schema in _SIMPLE.items():
        if issubclass(tp, base):
            return dict(schema)
    raise TypeError(f"{place}: the type {name_of(tp)} cannot be in a schema")


def _dataclass(tp: Any, place: str, parents: tuple[Any, ...]) -> dict[str, Any]:
    hints = hints_of(tp)
    properties, required = {}, []
    for field in dataclasses.fields(tp):
        if not field.init:
            continue
        name = alias_of(field)
        schema = schema_of(hints[field.name], f"{place}.{name}", parents)
        schema |= dict(field.metadata.get("schema", {}))
        has_default, default = default_of(field)
        if not has_default:
            required.append(name)
        elif default is not None:
            schema["default"] = encode(default)
        properties[name] = schema
    return _object(tp, properties, required)


def _typed_dict(tp: Any, place: str, parents: tuple[Any, ...]) -> dict[str, Any]:
    hints = hints_of(tp)
    properties = {name: schema_of(hint, f"{place}.{name}", parents) for name, hint in hints.items()}
    return _object(tp, properties, sorted(tp.__required_keys__))


def _object(tp: Any, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    doc = (tp.__doc__ or "").strip()
    if doc and not doc.startswith(f"{tp.__name__}("):  # that one is made by dataclasses
        schema["description"] = doc
    return schema


def _union(args: tuple[Any, ...], place: str, parents: tuple[Any, ...]) -> dict[str, Any]:
    rest = [arg for arg in args if arg is not type(None)]
    schemas = [schema_of(arg, place, parents) for arg in rest]
    nullable = {"nullable": True} if len(rest) < len(args) else {}
    if len(schemas) == 1:
        return schemas[0] | nullable
    if {schema.get("type") for schema in schemas} == {"integer", "string"}:
        return {"x-kubernetes-int-or-string": True} | nullable
    return dict(ANYTHING) | nullable


def _choice(values: list[Any], place: str) -> dict[str, Any]:
    kinds = {type(value) for value in values if value is not None}
    names = {str: "string", int: "integer", bool: "boolean", float: "number"}
    if len(kinds) != 1 or not kinds <= set(names):
        raise TypeError(f"{place}: all choices must be texts, or all numbers: {values!r}")
    schema: dict[str, Any] = {"type": names[kinds.pop()], "enum": values}
    return schema | ({"nullable": True} if None in values else {})


def _list(args: tuple[Any, ...], place: str, parents: tuple[Any, ...]) -> dict[str, Any]:
    kinds = set(args) - {Ellipsis}
    item = args[0] if len(kinds) == 1 else Any
    return {"type": "array", "items": schema_of(item, f"{place}[]", parents)}


def _map(args: tuple[Any, ...], place: str, parents: tuple[Any, ...]) -> dict[str, Any]:
    if args and args[0] not in (str, Any):
        raise TypeError(f"{place}: the keys of objects are texts, not {name_of(args[0])}")
    if not args or args[1] is Any:
        return {"type": "object", **ANYTHING}
    values = schema_of(args[1], f"{place}.*", parents)
    return {"type": "object", "additionalProperties": values}
