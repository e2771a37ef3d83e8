"""Finalizers of objects."""

from __future__ import annotations

from typing import Any

from kopf._structs import bodies


def is_deletion_ongoing(body: bodies.Body) -> bool:
    """Whether the deletion of the object is requested."""
    return body.get("metadata", {}).get("deletionTimestamp") is not None


def is_deletion_blocked(body: bodies.Body, finalizer: str) -> bool:
    """Whether the object has this finalizer."""
    return finalizer in body.get("metadata", {}).get("finalizers", [])


def block_deletion(body: bodies.RawBody, finalizer: str) -> None:
    """Add the finalizer to a raw body if it is not there."""
    finalizers = body.setdefault("metadata", {}).setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


def allow_deletion(body: bodies.RawBody, finalizer: str) -> None:
    """Remove the finalizer from a raw body, and the containers that are empty then."""
    meta: Any = body.get("metadata", {})
    if "finalizers" in meta:
        meta["finalizers"] = [name for name in meta["finalizers"] if name != finalizer]
        if not meta["finalizers"]:
            del meta["finalizers"]
    if "metadata" in body and not meta:
        del body["metadata"]
