"""Custom resources from classes: ``@kopf.resource("example.com", "v1")``."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from kopf._models.flavours import flavour_of, name_of
from kopf._models.structural import ANYTHING
from kopf._structs import references

_ClassT = TypeVar("_ClassT", bound=type)


@dataclasses.dataclass(frozen=True)
class TypedResource:
    """What a class says about its resource."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    scope: str
    shortcuts: tuple[str, ...]
    categories: tuple[str, ...]
    columns: tuple[Mapping[str, Any], ...]
    storage: bool
    spec: Any
    status: Any

    def definition(self) -> dict[str, Any]:
        """Make the definition of the custom resource, with this one version."""
        names: dict[str, Any] = {
            "plural": self.plural,
            "singular": self.singular,
            "kind": self.kind,
        }
        if self.shortcuts:
            names["shortNames"] = list(self.shortcuts)
        if self.categories:
            names["categories"] = list(self.categories)
        version: dict[str, Any] = {
            "name": self.version,
            "served": True,
            "storage": self.storage,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": self._schema()},
        }
        if self.columns:
            version["additionalPrinterColumns"] = [dict(column) for column in self.columns]
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.plural}.{self.group}"},
            "spec": {
                "group": self.group,
                "scope": self.scope,
                "names": names,
                "versions": [version],
            },
        }

    def _schema(self) -> dict[str, Any]:
        from kopf._models.schemas import schema_of

        spec = schema_of(self.spec, f"{self.kind}.spec")
        # Results of handlers, conditions and progress are there, too, and not in the class.
        status: dict[str, Any] = {"type": "object", **ANYTHING}
        if self.status is not None:
            status = schema_of(self.status, f"{self.kind}.status") | ANYTHING
            # Objects begin without a status, and handlers write it in parts.
            status.pop("required", None)
            for field in status.get("properties", {}).values():
                field.pop("default", None)
        schema = {"type": "object", "properties": {"spec": spec, "status": status}}
        return schema | ({"required": ["spec"]} if spec.get("required") else {})


def resource(
    group: str,
    version: str,
    *,
    kind: str | None = None,
    plural: str | None = None,
    singular: str | None = None,
    scope: str = "Namespaced",
    shortcuts: Collection[str] = (),
    categories: Collection[str] = (),
    columns: Collection[Mapping[str, Any]] = (),
    storage: bool = True,
) -> Callable[[_ClassT], _ClassT]:
    """Declares a class as a custom resource; its ``spec`` and ``status`` are annotated with models.

    Models are dataclasses, or classes of pydantic or msgspec. Handlers are declared for the class,
    as in ``@kopf.on.create(Site)``, and get instances if they annotate ``spec`` and ``status``.
    The kind is the name of the class unless it is given.
    """
    if scope not in ("Namespaced", "Cluster"):
        raise ValueError(f"The scope is Namespaced or Cluster, not {scope!r}.")
    names = dict(sys._getframe(1).f_locals)

    def decorator(cls: _ClassT) -> _ClassT:
        try:
            hints = typing.get_type_hints(cls, localns=names, include_extras=True)
        except NameError as e:
            raise TypeError(f"{name_of(cls)}: an annotation cannot be resolved: {e}") from None
        if "spec" not in hints:
            raise TypeError(f"{name_of(cls)} is not a resource: it has no annotated `spec`")
        own_kind = kind or cls.__name__
        declared = TypedResource(
            group=group,
            version=version,
            kind=own_kind,
            plural=plural or plural_of(own_kind),
            singular=singular or own_kind.lower(),
            scope=scope,
            shortcuts=tuple(shortcuts),
            categories=tuple(categories),
            columns=tuple(columns),
            storage=storage,
            spec=_model(cls, "spec", hints["spec"]),
            status=_model(cls, "status", hints["status"]) if "status" in hints else None,
        )
        declared.definition()  # with errors at the place of the class
        setattr(cls, "__kopf_resource__", declared)
        return cls

    return decorator


def _model(cls: type, name: str, tp: Any) -> Any:
    """Get the model of a section, without ``None``."""
    if typing.get_origin(tp) in (typing.Union, types.UnionType):
        rest = [arg for arg in typing.get_args(tp) if arg is not type(None)]
        tp = rest[0] if len(rest) == 1 else tp
    is_free = tp in (dict, Any) or typing.get_origin(tp) is dict or typing.is_typeddict(tp)
    if flavour_of(tp) is None and not is_free:
        raise TypeError(
            f"{name_of(cls)}.{name}: {name_of(tp)} is neither a dataclass nor a model of pydantic "
            f"or msgspec"
        )
    return tp


def plural_of(kind: str) -> str:
    """Guess the plural of a kind: ``Policy`` has ``policies``."""
    single = kind.lower()
    if single.endswith("y") and single[-2:-1] not in tuple("aeiou"):
        return f"{single[:-1]}ies"
    return f"{single}es" if single.endswith(("s", "x", "z", "ch", "sh")) else f"{single}s"


def resource_of(cls: type) -> TypedResource:
    """Get what a class says about its resource."""
    declared: TypedResource | None = getattr(cls, "__kopf_resource__", None)
    if declared is None:
        raise TypeError(f"{name_of(cls)} is not a resource: decorate it with @kopf.resource")
    return declared


def is_resource(cls: Any) -> bool:
    """Tell whether a class is decorated with ``@kopf.resource``."""
    return isinstance(cls, type) and hasattr(cls, "__kopf_resource__")


def definitions_of(selectors: Iterable[references.Selector]) -> list[dict[str, Any]]:
    """Get the definitions of all classes that selectors name."""
    classes = {selector.model: None for selector in selectors if selector.model is not None}
    return [resource_of(cls).definition() for cls in classes]
