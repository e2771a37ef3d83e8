"""Requests for objects by their resources."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from typing import Any

from kopf._clients import api, errors
from kopf._handlers.callbacks import Logger
from kopf._settings import configuration
from kopf._structs import bodies, patches, references

_MERGE = {"Content-Type": "application/merge-patch+json"}
_JSON = {"Content-Type": "application/json-patch+json"}
_CONFLICT = (
    "Could not apply the patch in full due to conflicts with newer changes."
    " Will try on the next cycle soon."
)


async def create_obj(
    *,
    settings: configuration.OperatorSettings,
    resource: references.Resource,
    namespace: references.Namespace = None,
    name: str | None = None,
    body: bodies.RawBody | None = None,
    logger: Logger,
) -> bodies.RawBody | None:
    """Create an object; the name and the namespace are added if the body has none."""
    full: Any = {} if body is None else body
    for key, value in (("namespace", namespace), ("name", name)):
        if value is not None:
            full.setdefault("metadata", {}).setdefault(key, value)
    url = resource.get_url(namespace=full.get("metadata", {}).get("namespace"))
    created: bodies.RawBody = await api.post(
        url=url, payload=full, logger=logger, settings=settings
    )
    return created


async def fetch_objs(
    *,
    settings: configuration.OperatorSettings,
    resource: references.Resource,
    namespace: references.Namespace,
    logger: Logger,
) -> AsyncIterator[tuple[Collection[bodies.RawBody], str]]:
    """List objects in chunks, each with the version of the list."""
    watching = settings.watching
    params: dict[str, str] = {}
    if watching.chunk_size is not None:
        params["limit"] = str(watching.chunk_size)
    for name, chosen in (
        ("labelSelector", ",".join(sorted({*watching.label_selectors.collect(resource)}))),
        ("fieldSelector", ",".join(sorted({*watching.field_selectors.collect(resource)}))),
        ("shardSelector", next(iter(watching.shard_selectors.collect(resource)), "")),
    ):
        if chosen:
            params[name] = chosen
    while True:
        url = resource.get_url(namespace=namespace, params=params)
        page = await api.get(url=url, logger=logger, settings=settings)
        shared = {}
        if "kind" in page:
            shared["kind"] = page["kind"].removesuffix("List")
        if "apiVersion" in page:
            shared["apiVersion"] = page["apiVersion"]
        items = page.get("items", [])
        for item in items:
            for key, value in shared.items():
                item.setdefault(key, value)
        meta = page.get("metadata", {})
        yield items, meta.get("resourceVersion")
        if not meta.get("continue"):
            return
        params["continue"] = meta["continue"]


async def patch_obj(
    *,
    settings: configuration.OperatorSettings,
    resource: references.Resource,
    namespace: references.Namespace,
    name: str,
    patch: patches.Patch,
    logger: Logger,
    silent: bool = False,
) -> tuple[bodies.RawBody | None, patches.Patch | None]:
    """Change an object and its status: first by the content of the patch, then by its functions.

    Return the changed object, and what is left of the patch if others have changed the object in
    the meantime. Both are None if there is no such object.
    """
    has_status = "status" in resource.subresources
    body: Any = None

    async def send(part: str, how: dict[str, str], payload: Any) -> None:
        nonlocal body
        verb = "JSON-patching" if how is _JSON else "Merge-patching"
        if not silent:
            logger.debug(f"{verb} the {part} with: {payload!r}")
        subresource = "status" if part == "status" else None
        body = await api.patch(
            url=resource.get_url(namespace=namespace, name=name, subresource=subresource),
            headers=how,
            payload=payload,
            settings=settings,
            logger=logger,
        )

    merged = dict(patch)
    merged_status = merged.pop("status", None) if has_status else None
    rest = patches.Patch(fns=patch.fns)
    try:
        if merged:
            await send("resource", _MERGE, merged)
        if merged_status is not None:
            await send("status", _MERGE, {"status": merged_status})
        known = body or patch._original
        of_body, of_status = _split(rest.as_json_patch(known), has_status)
        for part, operations in (("resource", of_body), ("status", of_status)):
            if operations:
                version = (known or {}).get("metadata", {}).get("resourceVersion")
                test = {"op": "test", "path": "/metadata/resourceVersion", "value": version}
                try:
                    await send(part, _JSON, [test, *operations])
                except errors.APIUnprocessableEntityError:
                    if not silent:
                        logger.debug(f"{_CONFLICT} Remaining: {rest!r}")
                    return body, rest
                known = body
    except errors.APINotFoundError:
        logger.debug("Patching was skipped: the object does not exist anymore.")
        return None, None
    return body, None


def _split(operations: patches.JSONPatch, has_status: bool) -> tuple[list[Any], list[Any]]:
    """Separate the operations on the status, if it is written on its own."""
    paths = [(operation, f"{operation.get('path', '')}/") for operation in operations]
    of_status = [it for it, path in paths if has_status and path.startswith("/status/")]
    return [it for it in operations if it not in of_status], of_status
