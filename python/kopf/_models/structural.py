"""From JSON Schema, as libraries make it, to the structural schemas of Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

ANYTHING: Final[dict[str, Any]] = {"x-kubernetes-preserve-unknown-fields": True}
"""The schema of any content."""

_KEPT = {
    "type",
    "format",
    "description",
    "default",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "nullable",
    "required",
}


def to_structural(schema: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Convert a schema; raises ``TypeError`` for what a definition cannot describe."""
    return _Converter(schema.get("$defs", {})).convert(schema, place, ())


class _Converter:
    def __init__(self, definitions: Mapping[str, Any]) -> None:
        super().__init__()
        self._definitions = definitions

    def convert(
        self, schema: Mapping[str, Any] | bool, place: str, parents: tuple[str, ...]
    ) -> dict[str, Any]:
        if not schema or schema is True:
            return dict(ANYTHING)
        assert not isinstance(schema, bool)
        if "$ref" in schema:
            return self._referred(schema, place, parents)
        if "allOf" in schema and len(schema["allOf"]) == 1:
            merged = {**schema["allOf"][0], **_without(schema, "allOf")}
            return self.convert(merged, place, parents)
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self._any_of(_without(schema, word), schema[word], place, parents)
        if isinstance(schema.get("type"), list):
            options = [{**schema, "type": kind} for kind in schema["type"]]
            return self._any_of({}, options, place, parents)
        return self._plain(schema, place, parents)

    def _referred(
        self, schema: Mapping[str, Any], place: str, parents: tuple[str, ...]
    ) -> dict[str, Any]:
        name = schema["$ref"].rpartition("/")[2]
        if name in parents:
            raise TypeError(f"{place}: {name} contains itself, which no definition can describe")
        merged = {**self._definitions[name], **_without(schema, "$ref")}
        return self.convert(merged, place, (*parents, name))

    def _any_of(
        self,
        schema: Mapping[str, Any],
        options: Sequence[Mapping[str, Any]],
        place: str,
        parents: tuple[str, ...],
    ) -> dict[str, Any]:
        rest = [option for option in options if option.get("type") != "null"]
        converted = [self.convert(option, place, parents) for option in rest]
        common: dict[str, Any] = {"nullable": True} if len(rest) < len(options) else {}
        common |= {key: schema[key] for key in ("description", "default") if key in schema}
        if common.get("default", "") is None:
            del common["default"]
        if len(converted) == 1:
            return converted[0] | common
        if {option.get("type") for option in converted} == {"integer", "string"}:
            return {"x-kubernetes-int-or-string": True} | common
        return dict(ANYTHING) | common

    def _plain(
        self, schema: Mapping[str, Any], place: str, parents: tuple[str, ...]
    ) -> dict[str, Any]:
        plain = {key: value for key, value in schema.items() if key in _KEPT}
        plain |= {k: v for k, v in schema.items() if k.startswith("x-kubernetes-")}
        if plain.get("default", "") is None:
            del plain["default"]
        if "const" in schema:
            plain["enum"] = [schema["const"]]
        if "enum" in plain and "type" not in plain:
            plain["type"] = _type_of(plain["enum"], place)
        for limit, word in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if word in schema:
                plain |= {limit: schema[word], word: True}
        if plain.get("type") == "array":
            items = schema.get("items", True) if "prefixItems" not in schema else True
            plain["items"] = self.convert(items, f"{place}[]", parents)
        if plain.get("type") == "object":
            plain |= self._content(schema, place, parents)
        if "type" not in plain and not any(key.startswith("x-kubernetes-") for key in plain):
            plain |= ANYTHING
        return plain

    def _content(
        self, schema: Mapping[str, Any], place: str, parents: tuple[str, ...]
    ) -> dict[str, Any]:
        others = schema.get("additionalProperties")
        if "properties" in schema:
            properties = {
                name: self.convert(value, f"{place}.{name}", parents)
                for name, value in schema["properties"].items()
            }
            # Both together are not allowed; the first one says more.
            content: dict[str, Any] = {"properties": properties}
            return content | (ANYTHING if others else {})
        if isinstance(others, Mapping) and others:
            return {"additionalProperties": self.convert(others, f"{place}.*", parents)}
        return {} if others is False else dict(ANYTHING)


def _without(schema: Mapping[str, Any], word: str) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != word}


def _type_of(values: list[Any], place: str) -> str:
    names = {str: "string", int: "integer", bool: "boolean", float: "number"}
    kinds = {names.get(type(value)) for value in values}
    if len(kinds) != 1 or None in kinds:
        raise TypeError(f"{place}: all choices must be texts, or all numbers: {values!r}")
    return str(kinds.pop())
