"""Copies of objects in all namespaces: watchers of namespaces and of copies, with pykube."""

import pykube
from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
SOURCE = "kopf.dev/copied-from"
# Copies are seen while others are made.
RACES = True
STEPS = [
    ("create", "token", {"spec": {"data": {"a": "1"}, "to": ["team-a", "team-b"]}}),
    ("patch", "token", {"spec": {"data": {"a": "2", "b": "3"}}}),
    ("patch", "token", {"spec": {"to": ["team-b"]}}),
    ("patch", "token", {"metadata": {"annotations": {"kopf.dev/freeze": "yes"}}}),
    ("patch", "token", {"spec": {"data": {"a": "4"}}}),
    ("patch", "token", {"metadata": {"annotations": {"kopf.dev/freeze": None}}}),
    ("delete", "token"),
]


@kopf.on.startup()
async def prepare(memo, settings, **_):
    memo.api = pykube.HTTPClient(pykube.KubeConfig.from_env())
    settings.execution.max_workers = 2
    settings.watching.server_timeout = 60
    settings.watching.connect_timeout = 5
    for name in ("team-a", "team-b"):
        metadata = {"name": name, "labels": {"team": name[-1]}}
        pykube.Namespace(memo.api, {"metadata": metadata}).create()


@kopf.on.event("namespaces", labels={"team": kopf.PRESENT})
async def seen(type, name, labels, memo, **_):
    memo.setdefault("seen", 0)
    memo.seen += 1
    if memo.seen == 1:
        note("namespace", type, name, labels["team"])


def copy(memo, name, namespace, data):
    found = pykube.ConfigMap.objects(memo.api).filter(namespace=namespace).get_or_none(name=name)
    body = {
        "metadata": {"name": name, "namespace": namespace, "annotations": {SOURCE: name}},
        "data": dict(data),
    }
    if found is None:
        pykube.ConfigMap(memo.api, body).create()
    else:
        found.obj["data"] = body["data"]
        found.update()
    return found is None


def frozen(annotations, **_):
    return annotations.get("kopf.dev/freeze") == "yes"


@kopf.on.resume(*EX, when=kopf.not_(frozen))
@kopf.on.create(*EX, when=kopf.not_(frozen))
@kopf.on.update(*EX, when=kopf.not_(frozen))
def spread(name, spec, memo, old, new, diff, patch, **_):
    created = [copy(memo, name, namespace, spec["data"]) for namespace in spec["to"]]
    removed = set((old or {}).get("spec", {}).get("to", [])) - set(spec["to"])
    for namespace in sorted(removed):
        pykube.ConfigMap.objects(memo.api, namespace=namespace).get(name=name).delete()
    note("spread", created, sorted(removed), sorted(path for _, path, _, _ in diff))
    patch.status["copies"] = len(created)


@kopf.on.update(*EX, when=kopf.all_([frozen, lambda old, **_: old is not None]))
def ignored(name, diff, **_):
    note("ignored", sorted(path for _, path, _, _ in diff))


@kopf.on.event("configmaps", annotations={SOURCE: lambda value, **_: value == "token"})
def copied(type, name, namespace, body, **_):
    if type != "MODIFIED":
        note("copied", type, name, namespace, sorted(body["data"]))


@kopf.on.delete(*EX)
def withdraw(name, spec, memo, **_):
    for namespace in spec["to"]:
        found = pykube.ConfigMap.objects(memo.api, namespace=namespace).get_by_name(name)
        note("withdraw", namespace, found.obj["data"])
        found.delete()
