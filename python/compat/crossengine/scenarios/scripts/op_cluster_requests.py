"""Requests by functions that are not public, as some libraries on top of Kopf make them."""

import logging

from crosslib import note
from kopf._cogs.clients import api, creating, errors, events, fetching, patching
from kopf._cogs.clients.auth import vault_var
from kopf._cogs.structs.patches import Patch
from kopf._cogs.structs.references import Resource

import kopf

STEPS = [("create", "one", {"spec": {"field": 1}})]
MAPS = Resource("", "v1", "configmaps", kind="ConfigMap", namespaced=True)
EVENTS = Resource("", "v1", "events", kind="Event", namespaced=True)


@kopf.on.create("kopfexamples")
async def create(body, name, namespace, resource, settings, **_):
    given = {"settings": settings, "logger": logging.getLogger("requests")}
    note("vault", (await anext(aiter(vault_var.get())))[1].server.startswith("https://"))
    note("namespace", await api.get_default_namespace())
    child = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    kopf.adopt(child, owner=body)
    made = await creating.create_obj(resource=MAPS, body=child, name=name, **given)
    note("created", made["metadata"]["name"], made["metadata"]["ownerReferences"][0]["kind"])
    try:
        await creating.create_obj(resource=MAPS, body=child, name=name, **given)
    except errors.APIConflictError as e:
        note("conflict", e.status, e.code, e.message, sorted(e.details))
    try:
        await api.get(url=MAPS.get_url(namespace=namespace, name="none"), **given)
    except errors.APIError as e:
        note("absent", type(e).__name__, e.status, repr(e)[:40])
    async for items, version in fetching.fetch_objs(resource=MAPS, namespace=namespace, **given):
        names = [item["metadata"]["name"] for item in items if item["kind"] == "ConfigMap"]
        note("listed", name in names, version.isdigit())
    patch = Patch({"data": {"c": "d"}}, fns=[lambda raw: raw["data"].update(e="f")])
    target = {"resource": MAPS, "namespace": namespace}
    changed, rest = await patching.patch_obj(name=name, patch=patch, **target, **given)
    note("patched", changed["data"], rest)
    note("gone", await patching.patch_obj(name="none", patch=patch, **target, **given))
    ref = kopf.build_object_reference(body)
    how = {"type": "Normal", "reason": "Direct", "message": "x" * 2000, "resource": EVENTS}
    await events.post_event(ref=ref, **how, **given)
    url = MAPS.get_url(namespace=namespace, name=name)
    note("deleted", (await api.delete(url=url, **given)).get("status"))
    async for event in api.stream(url=MAPS.get_url(params={"watch": "true"}), **given):
        note("watched", event["type"])
        break
