"""Which library a class belongs to: dataclasses, pydantic, msgspec. None of them is imported."""

from __future__ import annotations

import dataclasses
import enum
import functools
import typing
from typing import Any


class Flavour(enum.Enum):
    """What a model is made with."""

    DATACLASS = enum.auto()
    PYDANTIC = enum.auto()
    MSGSPEC = enum.auto()


def flavour_of(cls: Any) -> Flavour | None:
    """Tell what a class is made with; none for anything that is not a model."""
    if not isinstance(cls, type):
        return None
    if hasattr(cls, "model_json_schema") and hasattr(cls, "model_validate"):
        return Flavour.PYDANTIC
    if hasattr(cls, "__struct_fields__") and hasattr(cls, "__struct_config__"):
        return Flavour.MSGSPEC
    if dataclasses.is_dataclass(cls):
        # Dataclasses of pydantic have their own validation, which only pydantic knows.
        return Flavour.PYDANTIC if hasattr(cls, "__pydantic_fields__") else Flavour.DATACLASS
    return None


def is_model(value: Any) -> bool:
    """Tell whether a value is an instance of a model."""
    return not isinstance(value, type) and flavour_of(type(value)) is not None


@functools.cache
def hints_of(cls: Any) -> dict[str, Any]:
    """Get the types of the fields of a class; known from its declaration on.

    Scripts that are run by ``runpy`` leave no module behind, in which names could be found later.
    """
    return typing.get_type_hints(cls, include_extras=True)


def name_of(tp: Any) -> str:
    """Get the name of a type for messages."""
    return tp.__qualname__ if isinstance(tp, type) else str(tp)
