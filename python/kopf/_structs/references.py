"""Resources, selectors of resources, namespaces."""

from __future__ import annotations

import dataclasses
import enum
import fnmatch
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NewType

NamespacePattern = str | re.Pattern[str]
"""A namespace as users specify it: comma-separated globs, or a compiled regular expression."""

NamespaceName = NewType("NamespaceName", str)
Namespace = NamespaceName | None
"""One namespace, or None for the whole cluster."""


def select_specific_namespaces(patterns: Iterable[NamespacePattern]) -> Collection[NamespaceName]:
    """Get those patterns that are plain names of namespaces."""
    plain = (pattern for pattern in patterns if isinstance(pattern, str))
    return {NamespaceName(name) for name in plain if not set(name) & set("!*?,")}


def match_namespace(name: NamespaceName, pattern: NamespacePattern) -> bool:
    """Check a namespace against a pattern.

    Globs are read from left to right. The first one decides; a glob with ``!`` excludes;
    other globs bring back what was excluded. A leading ``!`` implies ``*`` before it.
    """
    if isinstance(pattern, re.Pattern):
        return pattern.fullmatch(name) is not None
    first, *rest = [glob.strip() for glob in pattern.split(",")]
    if first.startswith("!"):
        first, rest = "*", [first, *rest]
    initial = result = fnmatch.fnmatch(name, first)
    for glob in rest:
        hit = fnmatch.fnmatch(name, glob.lstrip("!"))
        if glob.startswith("!"):
            result = result and not hit
        else:
            result = result or (initial and hit)
    return result


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Resource:
    """A kind of objects in the cluster. Two are equal if group, version and plural are equal."""

    group: str
    version: str
    plural: str
    kind: str | None = None
    singular: str | None = None
    shortcuts: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()
    subresources: frozenset[str] = frozenset()
    namespaced: bool | None = None
    preferred: bool = True
    verbs: frozenset[str] = frozenset()

    @property
    def _identity(self) -> tuple[str, str, str]:
        return (self.group, self.version, self.plural)

    def __hash__(self) -> int:
        return hash(self._identity)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Resource):
            return self._identity == other._identity
        return NotImplemented

    def __repr__(self) -> str:
        plural, slash, subresource = self.plural.partition("/")
        return f"{plural}.{self.version}.{self.group}".strip(".") + slash + subresource

    def __iter__(self) -> Iterator[str]:
        return iter(self._identity)

    def get_url(
        self,
        *,
        server: str | None = None,
        namespace: Namespace = None,
        name: str | None = None,
        subresource: str | None = None,
        params: dict[str, str] | None = None,
    ) -> str:
        """Build a URL of the resource, of one object, or of a subresource of an object."""
        if subresource is not None and name is None:
            raise ValueError("Subresources can be used only with specific resources by their name.")
        if namespace is not None and not self.namespaced:
            raise ValueError("Specific namespaces are not supported for cluster-scoped resources.")
        if namespace is None and name is not None and self.namespaced:
            raise ValueError("Specific namespaces are required for specific namespaced resources.")
        parts = ["/api"] if (self.group, self.version) == ("", "v1") else ["/apis", self.group]
        parts.append(self.version)
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts += [self.plural, name or "", subresource or ""]
        url = "/".join(part for part in parts if part)
        if params:
            import urllib.parse  # slow to import, rarely needed

            url += "?" + urllib.parse.urlencode(params, encoding="utf-8")
        return url if server is None else f"{server.rstrip('/')}/{url.lstrip('/')}"


class Marker(enum.Enum):
    """Special values of selectors."""

    EVERYTHING = enum.auto()


EVERYTHING = Marker.EVERYTHING
"""Selects all resources except events."""

_VERSIONED = re.compile(
    r"(?P<name>[^.]*)\.(?P<version>v\d+(?:(?:alpha|beta)\d+)?)(?:\.(?P<group>.*))?"
)
_NAMES = ("kind", "plural", "singular", "shortcut", "category", "any_name", "fn")


def _parse_args(args: tuple[Any, ...]) -> dict[str, Any]:
    """Read the positional arguments of a selector."""
    if not args:
        return {}
    first = args[0]
    if isinstance(first, type) and hasattr(first, "__kopf_resource__"):
        if len(args) > 1:
            raise TypeError("A typed resource cannot have any other selectors.")
        typed = first.__kopf_resource__
        named = {"group": typed.group, "version": typed.version, "plural": typed.plural}
        return named | {"model": first}
    if callable(first):
        if len(args) > 1:
            raise TypeError("The callable filter cannot have any other selectors.")
        return {"fn": first}
    if len(args) == 1:
        if not isinstance(first, str):
            return {"any_name": first}
        if found := _VERSIONED.fullmatch(first):
            parsed = {"any_name": found["name"], "version": found["version"]}
            return parsed if found["group"] is None else parsed | {"group": found["group"]}
        name, dot, group = first.partition(".")
        return {"any_name": name, "group": group} if dot else {"any_name": name}
    if len(args) == 2:
        name = args[1]
        if isinstance(first, str) and "/" in first:
            group, _, version = first.rpartition("/")
            return {"group": group, "version": version, "any_name": name}
        if first == "v1":
            return {"group": "", "version": "v1", "any_name": name}
        return {"group": first, "any_name": name}
    if len(args) == 3:
        return {"group": first, "version": args[1], "any_name": args[2]}
    raise TypeError("Too many positional arguments. Max 3 positional args are accepted.")


@dataclasses.dataclass(frozen=True)
class Selector:
    """Which resources a handler is for; written as in the decorators."""

    arg1: dataclasses.InitVar[str | Marker | Callable[[Resource], bool] | None] = None
    arg2: dataclasses.InitVar[str | Marker | None] = None
    arg3: dataclasses.InitVar[str | Marker | None] = None
    argN: dataclasses.InitVar[None] = None

    group: str | None = None
    version: str | None = None
    kind: str | None = None
    plural: str | None = None
    singular: str | None = None
    shortcut: str | None = None
    category: str | None = None
    any_name: str | Marker | None = None
    fn: Callable[[Resource], bool] | None = None
    model: type | None = dataclasses.field(default=None, compare=False, repr=False)

    def __post_init__(self, arg1: Any, arg2: Any, arg3: Any, argN: Any) -> None:
        args = [arg1, arg2, arg3, argN]
        while args and args[-1] is None:
            args.pop()
        for name, value in _parse_args(tuple(args)).items():
            object.__setattr__(self, name, value)

        given = [value for name in _NAMES if (value := getattr(self, name)) is not None]
        if len(given) > 1:
            raise TypeError(f"Ambiguous resource specification with {given}")
        if not given:
            raise TypeError("Unspecific resource with no names.")
        if given == [""]:
            raise TypeError("Names must not be empty strings; either None or specific strings.")

    def __repr__(self) -> str:
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.repr}
        texts = [f"{name}={value!r}" for name, value in values.items() if value is not None]
        return f"{type(self).__name__}({', '.join(texts)})"

    @property
    def is_specific(self) -> bool:
        """Whether it names one resource, and so must match one resource only."""
        names = (self.kind, self.shortcut, self.plural, self.singular, self.any_name)
        return any(isinstance(name, str) for name in names)

    def check(self, resource: Resource) -> bool:
        """Check whether a resource is selected."""
        if self.group is not None and self.group != resource.group:
            return False
        if self.version is not None and self.version != resource.version:
            return False
        if self.version is None and self.fn is None and not resource.preferred:
            return False
        return self._check_name(resource)

    def _check_name(self, resource: Resource) -> bool:
        if self.fn is not None:
            return not _is_event(resource) and bool(self.fn(resource))
        if self.any_name is Marker.EVERYTHING:
            return not _is_event(resource)
        if self.any_name is not None:
            names = (resource.kind, resource.plural, resource.singular)
            return self.any_name in names or self.any_name in resource.shortcuts
        if self.category is not None:
            return self.category in resource.categories
        if self.shortcut is not None:
            return self.shortcut in resource.shortcuts
        if self.kind is not None:
            return self.kind == resource.kind
        if self.plural is not None:
            return self.plural == resource.plural
        return self.singular == resource.singular

    def select(self, resources: Collection[Resource]) -> Collection[Resource]:
        """Get the selected resources. The core group hides others if a name is given."""
        found = {resource for resource in resources if self.check(resource)}
        core = {resource for resource in found if resource.group == ""}
        return core if core and self.is_specific else found


CRDS = Selector("apiextensions.k8s.io", "customresourcedefinitions")
EVENTS = Selector("v1", "events")
EVENTS_K8S = Selector("events.k8s.io", "events")
NAMESPACES = Selector("v1", "namespaces")
CLUSTER_PEERINGS_K = Selector("kopf.dev/v1", "clusterkopfpeerings")
CLUSTER_PEERINGS_Z = Selector("zalando.org/v1", "clusterkopfpeerings")
NAMESPACED_PEERINGS_K = Selector("kopf.dev/v1", "kopfpeerings")
NAMESPACED_PEERINGS_Z = Selector("zalando.org/v1", "kopfpeerings")
MUTATING_WEBHOOK = Selector("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
VALIDATING_WEBHOOK = Selector("admissionregistration.k8s.io", "validatingwebhookconfigurations")


def _is_event(resource: Resource) -> bool:
    """Events are never selected by a catch-all: handling them makes more of them."""
    return EVENTS.check(resource) or EVENTS_K8S.check(resource)
