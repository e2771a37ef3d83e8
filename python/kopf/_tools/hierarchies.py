"""Children of objects: owner references, names, namespaces, labels.

Objects can be dicts, models of the official clients, or objects of pykube; also any nesting of
iterables of them. They are changed in place.
"""

from __future__ import annotations

import collections.abc
import enum
import warnings
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, TypeAlias

from kopf._handlers import causes, execution
from kopf._structs import bodies, dicts, thirdparty

K8sObject: TypeAlias = (
    MutableMapping[Any, Any]
    | thirdparty.PykubeObject
    | thirdparty.KubernetesModelSync
    | thirdparty.KubernetesModelAsync
)
K8sObjects: TypeAlias = K8sObject | Iterable[K8sObject]


class _UNSET(enum.Enum):
    """Marks an argument that was not given."""

    token = enum.auto()


class _DictMeta:
    """The metadata of a dict."""

    def __init__(self, obj: MutableMapping[Any, Any]) -> None:
        self._meta: MutableMapping[str, Any] = obj.setdefault("metadata", {})

    def has(self, key: str) -> bool:
        return key in self._meta

    def get(self, key: str) -> Any:
        return self._meta.get(key)

    def set(self, key: str, value: Any) -> None:
        self._meta[key] = value

    def unset(self, key: str) -> None:
        self._meta.pop(key, None)

    def owners(self) -> list[Any]:
        refs: list[Any] = self._meta.setdefault("ownerReferences", [])
        return refs

    def labels(self) -> MutableMapping[str, Any]:
        labels: MutableMapping[str, Any] = self._meta.setdefault("labels", {})
        return labels

    def uid_of(self, ref: Any) -> str | None:
        uid: str | None = ref.get("uid")
        return uid

    def make_ref(self, ref: bodies.OwnerReference) -> Any:
        return ref


class _ModelMeta:
    """The metadata of a model of a client library."""

    _NAMES = {"generateName": "generate_name"}

    def __init__(self, obj: Any) -> None:
        self._obj = obj
        if obj.metadata is None:
            obj.metadata = thirdparty.model_class(obj, "V1ObjectMeta")()
        self._meta = obj.metadata

    def _name(self, key: str) -> str:
        return self._NAMES.get(key, key)

    def has(self, key: str) -> bool:
        return self.get(key) is not None

    def get(self, key: str) -> Any:
        return getattr(self._meta, self._name(key))

    def set(self, key: str, value: Any) -> None:
        setattr(self._meta, self._name(key), value)

    def unset(self, key: str) -> None:
        if self.has(key):
            self.set(key, None)

    def owners(self) -> list[Any]:
        if self._meta.owner_references is None:
            self._meta.owner_references = []
        refs: list[Any] = self._meta.owner_references
        return refs

    def labels(self) -> MutableMapping[str, Any]:
        if self._meta.labels is None:
            self._meta.labels = {}
        labels: MutableMapping[str, Any] = self._meta.labels
        return labels

    def uid_of(self, ref: Any) -> str | None:
        uid: str | None = ref.uid
        return uid

    def make_ref(self, ref: bodies.OwnerReference) -> Any:
        return thirdparty.model_class(self._obj, "V1OwnerReference")(
            api_version=ref.get("apiVersion"),
            kind=ref.get("kind"),
            name=ref.get("name"),
            uid=ref.get("uid"),
            controller=ref.get("controller"),
            block_owner_deletion=ref.get("blockOwnerDeletion"),
        )


def _metas(
    objs: K8sObjects, nested: Iterable[dicts.FieldSpec] | None = None
) -> Iterator[_DictMeta | _ModelMeta]:
    """Iterate over the metadata of all objects, of all supported classes."""
    models = (thirdparty.KubernetesModelSync, thirdparty.KubernetesModelAsync)
    for obj in dicts.walk(objs, nested=nested):
        if isinstance(obj, collections.abc.MutableMapping):
            yield _DictMeta(obj)
        elif isinstance(obj, models):
            yield _ModelMeta(obj)
        else:
            raise TypeError(f"K8s object class is not supported: {type(obj)}")


def append_owner_reference(
    objs: K8sObjects,
    owner: bodies.Body | None = None,
    *,
    controller: bool | None = True,
    block_owner_deletion: bool | None = True,
) -> None:
    """Make objects belong to the owner, so that they are deleted with it."""
    ref = bodies.build_owner_reference(
        _guess_owner(owner), controller=controller, block_owner_deletion=block_owner_deletion
    )
    for meta in _metas(objs):
        owners = meta.owners()
        if not any(meta.uid_of(other) == ref.get("uid") for other in owners):
            owners.append(meta.make_ref(ref))


def remove_owner_reference(objs: K8sObjects, owner: bodies.Body | None = None) -> None:
    """Make objects not belong to the owner anymore."""
    ref = bodies.build_owner_reference(_guess_owner(owner))
    for meta in _metas(objs):
        owners = meta.owners()
        owners[:] = [other for other in owners if meta.uid_of(other) != ref.get("uid")]


def label(
    objs: K8sObjects,
    labels: Mapping[str, str | None] | _UNSET = _UNSET.token,
    *,
    forced: bool = False,
    nested: str | Iterable[dicts.FieldSpec] | None = None,
    force: bool | None = None,
) -> None:
    """Put labels on objects, by default those of the object that is handled.

    Existing labels stay unless it is forced. ``nested`` are fields with their own metadata,
    e.g. ``spec.template``.
    """
    if force is not None:
        warnings.warn(
            "force= is deprecated in kopf.label(); use forced=...",
            DeprecationWarning,
            stacklevel=1,
        )
        forced = force
    wanted: Mapping[str, str | None]
    if isinstance(labels, _UNSET):
        wanted = _guess_owner(None).get("metadata", {}).get("labels", {})
    else:
        wanted = labels
    fields = [nested] if isinstance(nested, str) else nested
    for meta in _metas(objs, nested=fields):
        existing = meta.labels()
        for key, value in wanted.items():
            if forced or key not in existing:
                existing[key] = value


def harmonize_naming(
    objs: K8sObjects,
    name: str | None | _UNSET = _UNSET.token,
    *,
    forced: bool = False,
    strict: bool = False,
) -> None:
    """Name objects that have no names: after the owner with a random suffix, or exactly so."""
    if isinstance(name, _UNSET):
        name = _guess_owner(None).get("metadata", {}).get("name")
    if name is None:
        raise LookupError("Name must be set explicitly: couldn't find it automatically.")
    for meta in _metas(objs):
        if not forced and (meta.has("name") or meta.has("generateName")):
            continue
        if strict:
            meta.set("name", name)
            meta.unset("generateName")
        else:
            meta.set("generateName", f"{name}-")
            meta.unset("name")


def adjust_namespace(
    objs: K8sObjects,
    namespace: str | None | _UNSET = _UNSET.token,
    *,
    forced: bool = False,
) -> None:
    """Put objects without a namespace to that of the owner."""
    if isinstance(namespace, _UNSET):
        namespace = _guess_owner(None).get("metadata", {}).get("namespace")
    for meta in _metas(objs):
        if forced or meta.get("namespace") is None:
            meta.set("namespace", namespace)


def adopt(
    objs: K8sObjects,
    owner: bodies.Body | None = None,
    *,
    forced: bool = False,
    strict: bool = False,
    nested: str | Iterable[dicts.FieldSpec] | None = None,
) -> None:
    """Make objects children of the owner: its references, name, namespace and labels."""
    owner = _guess_owner(owner)
    meta = owner.get("metadata", {})
    append_owner_reference(objs, owner=owner)
    harmonize_naming(objs, name=meta.get("name"), forced=forced, strict=strict)
    adjust_namespace(objs, namespace=meta.get("namespace"), forced=forced)
    label(objs, labels=meta.get("labels", {}), forced=forced, nested=nested)


def _guess_owner(owner: bodies.Body | None) -> bodies.Body:
    """Get the given owner, or the object that is handled."""
    if owner is not None:
        return owner
    cause = execution.cause_var.get(None)
    if isinstance(cause, causes.ResourceCause):
        return cause.body
    raise LookupError("Owner must be set explicitly, since running outside of a handler.")
