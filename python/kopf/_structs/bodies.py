"""Objects of Kubernetes: raw dicts, live views of them, references to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, TypedDict, cast

from kopf._structs import dicts, references

Labels: TypeAlias = Mapping[str, str]
"""The labels of an object, as in the kwarg ``labels``."""

Annotations: TypeAlias = Mapping[str, str]
"""The annotations of an object, as in the kwarg ``annotations``."""

RawInputType = Literal[None, "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
RawEventType = Literal[None, "ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
"""The type of a watch event; None for an object that comes from a list."""


class RawMeta(TypedDict, total=False):
    """The metadata of an object, as decoded from JSON."""

    uid: str
    name: str
    namespace: str
    labels: dict[str, str]
    annotations: dict[str, str]
    finalizers: list[str]
    resourceVersion: str
    deletionTimestamp: str
    creationTimestamp: str
    selfLink: str


class RawBody(TypedDict, total=False):
    """A whole object, as decoded from JSON."""

    apiVersion: str
    kind: str
    metadata: RawMeta
    spec: dict[str, Any]
    status: dict[str, Any]


class RawError(TypedDict, total=False):
    """The payload of an ERROR event."""

    apiVersion: str
    kind: str
    metadata: dict[Any, Any]
    code: int
    reason: str
    status: str
    message: str


class RawInput(TypedDict, total=True):
    """One line of a watch stream, errors included."""

    type: RawInputType
    object: RawBody | RawError


class RawEvent(TypedDict, total=True):
    """One event of an object, as in the kwarg ``event``."""

    type: RawEventType
    object: RawBody


class MetaEssence(TypedDict, total=False):
    """The part of the metadata that counts as a change."""

    labels: dict[str, str]
    annotations: dict[str, str]


class BodyEssence(TypedDict, total=False):
    """The part of an object that counts as a change; see the kwargs ``old`` and ``new``."""

    metadata: MetaEssence
    spec: dict[str, Any]
    status: dict[str, Any]


class Meta(dicts.MappingView[str, Any]):
    """The metadata of an object: a live view."""

    def __init__(self, __src: Body) -> None:
        super().__init__(__src, "metadata")
        # They are views of views, so they always show the current metadata.
        self._annotations: dicts.MappingView[str, str] = dicts.MappingView(self, "annotations")
        self._labels: dicts.MappingView[str, str] = dicts.MappingView(self, "labels")

    def _text(self, key: str) -> Any:
        """Get a value that every object has, once it is in the cluster."""
        return self.get(key)

    @property
    def name(self) -> str:
        return cast(str, self._text("name"))

    @property
    def namespace(self) -> references.Namespace:
        return cast(references.Namespace, self._text("namespace"))

    @property
    def uid(self) -> str:
        return cast(str, self._text("uid"))

    @property
    def annotations(self) -> Annotations:
        return self._annotations

    @property
    def labels(self) -> Labels:
        return self._labels

    @property
    def creation_timestamp(self) -> str | None:
        return cast("str | None", self.get("creationTimestamp"))

    @property
    def deletion_timestamp(self) -> str | None:
        return cast("str | None", self.get("deletionTimestamp"))


class Spec(dicts.MappingView[str, Any]):
    """The spec of an object: a live view."""

    def __init__(self, __src: Body) -> None:
        super().__init__(__src, "spec")


class Status(dicts.MappingView[str, Any]):
    """The status of an object: a live view."""

    def __init__(self, __src: Body) -> None:
        super().__init__(__src, "status")


class Body(dicts.ReplaceableMappingView[str, Any]):
    """A whole object: a live view, with views of its sections."""

    def __init__(self, __src: Mapping[str, Any] | RawBody | BodyEssence) -> None:
        super().__init__(cast("Mapping[str, Any]", __src))

    # The views are made on first use.
    _meta: Meta | None = None
    _spec: Spec | None = None
    _status: Status | None = None

    @property
    def metadata(self) -> Meta:
        if self._meta is None:
            self._meta = Meta(self)
        return self._meta

    @property
    def meta(self) -> Meta:
        return self.metadata

    @property
    def spec(self) -> Spec:
        if self._spec is None:
            self._spec = Spec(self)
        return self._spec

    @property
    def status(self) -> Status:
        if self._status is None:
            self._status = Status(self)
        return self._status


class ObjectReference(TypedDict, total=False):
    """A reference to an object, as used in Kubernetes events."""

    apiVersion: str
    kind: str
    namespace: str | None
    name: str
    uid: str


class OwnerReference(TypedDict, total=False):
    """A reference to the owner of an object."""

    controller: bool
    blockOwnerDeletion: bool
    apiVersion: str
    kind: str
    name: str
    uid: str


def build_object_reference(body: Body) -> ObjectReference:
    """Make a reference to an object; empty parts are left out."""
    meta: Mapping[str, Any] = body.get("metadata", {})
    parts = {"apiVersion": body.get("apiVersion"), "kind": body.get("kind")}
    parts |= {key: meta.get(key) for key in ("name", "uid", "namespace")}
    return cast(ObjectReference, {key: part for key, part in parts.items() if part})


def build_owner_reference(
    body: Body,
    *,
    controller: bool | None = True,
    block_owner_deletion: bool | None = True,
) -> OwnerReference:
    """Make an entry for ``metadata.ownerReferences`` that points to an object."""
    meta: Mapping[str, Any] = body.get("metadata", {})
    parts: dict[str, Any] = {
        "controller": controller,
        "blockOwnerDeletion": block_owner_deletion,
        "apiVersion": body.get("apiVersion"),
        "kind": body.get("kind"),
        "name": meta.get("name"),
        "uid": meta.get("uid"),
    }
    return cast(OwnerReference, {key: part for key, part in parts.items() if part is not None})
