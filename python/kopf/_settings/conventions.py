"""How storages name their annotations, and how they recognise those of other operators.

The names and the hashes are a wire format: other releases of Kopf read and write the same objects.
"""

from __future__ import annotations

import base64
import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from kopf._structs import bodies, patches

_MAX_NAME = 63
_MAX_KEY = 253
_UNSAFE = str.maketrans({"/": ".", "<": "_", ">": "_"})
_MARKER = "kopf-managed"
_PREFIX = "kopf.zalando.org"


class CollisionEvadingConvention:
    """Keeps the state of a ReplicaSet apart from the state of its Deployment.

    Kubernetes copies the annotations of a Deployment to its ReplicaSets.
    """

    def mark_key(self, key: str, *, body: bodies.Body) -> str:
        if body.get("kind") == "ReplicaSet":
            owners: Iterable[Mapping[str, Any]] = body.meta.get("ownerReferences", ())
            if any(owner["kind"] == "Deployment" for owner in owners):
                return f"{key}-ofDRS"
        return key


class StorageKeyFormingConvention(CollisionEvadingConvention):
    """Turns ids of handlers into valid names of annotations.

    There are two versions. V2 limits the name to 63 characters; V1 limits the name with the prefix.
    Both are written, so that older releases can take over; V2 is read first.
    """

    def __init__(self, *args: Any, prefix: str, v1: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not prefix:
            raise ValueError("Annotations storages must be prefixed.")
        if len(prefix) > _MAX_KEY - _MAX_NAME - 1:
            warnings.warn(
                "The annotations prefix is too long. It can cause errors when PATCHing.",
                stacklevel=1,
            )
        self.prefix = prefix
        self.v1 = v1

    def make_keys(self, key: str, *, body: bodies.Body | None = None) -> Iterable[str]:
        """Get all names of the annotation for a key, the preferred one first."""
        if body is not None:
            key = self.mark_key(key, body=body)
        names = [self.make_v2_key(key)]
        if self.v1 and (old := self.make_v1_key(key)) not in names:
            names.append(old)
        return names

    @staticmethod
    def make_safe_key(key: str) -> str:
        return key.translate(_UNSAFE)

    def make_v1_key(self, key: str, max_length: int = _MAX_NAME) -> str:
        safe = self.make_safe_key(key)
        limit = max_length - len(self.prefix) - 1
        suffix = self.make_suffix(safe) if len(safe) > limit else ""
        return f"{self.prefix}/{safe[: limit - len(suffix)]}{suffix}"

    def make_v2_key(self, key: str, max_length: int = _MAX_NAME) -> str:
        suffix = self.make_suffix(key) if len(key) > max_length else ""
        limit = max(0, max_length - len(suffix))
        return f"{self.prefix}/{self.make_safe_key(key)[:limit]}{suffix}"

    def make_suffix(self, key: str) -> str:
        import hashlib  # the engine has its own storages, so that few operators need it

        digest = hashlib.blake2b(key.encode("utf-8"), digest_size=4).digest()
        text = base64.b64encode(digest, altchars=b"-.").decode("ascii")
        return f"-{text}".rstrip("=-.")


class StorageKeyMarkingConvention:
    """Recognises the annotations of Kopf's operators, so that they do not react to each other."""

    def _detect_marked_prefixes(self, keys: Collection[str]) -> Collection[str]:
        found: set[str] = set()
        for key in keys:
            prefix, slash, name = key.partition("/")
            known = prefix == _PREFIX or prefix.endswith(f".{_PREFIX}")
            if slash and (known or name == _MARKER):
                found.add(prefix)
        return frozenset(found)

    def _store_marker(self, prefix: str, patch: patches.Patch, body: bodies.Body) -> None:
        if not prefix or prefix.startswith("kopf."):
            return
        marker = f"{prefix}/{_MARKER}"
        if marker not in body.metadata.annotations and marker not in patch.metadata.annotations:
            patch.metadata.annotations[marker] = "yes"


class StorageStanzaCleaner:
    """Removes annotations and empty sections from essences, in place."""

    @staticmethod
    def remove_annotations(essence: bodies.BodyEssence, keys_to_remove: Collection[str]) -> None:
        annotations = essence.get("metadata", {}).get("annotations", {})
        kept = {key: value for key, value in annotations.items() if key not in keys_to_remove}
        if len(kept) != len(annotations):
            essence.setdefault("metadata", {})["annotations"] = kept

    @staticmethod
    def remove_empty_stanzas(essence: bodies.BodyEssence) -> None:
        meta = cast("dict[str, Any]", essence.get("metadata", {}))
        for key in ("annotations", "labels"):
            if key in meta and not meta[key]:
                del meta[key]
        whole = cast("dict[str, Any]", essence)
        for key in ("metadata", "status"):
            if key in whole and not whole[key]:
                del whole[key]
