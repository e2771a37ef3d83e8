"""Stacked decorators, own error classes, posted events, results, and conditions."""

import dataclasses

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
STEPS = [
    ("create", "main", {"spec": {"size": 1, "users": ["a", "b"], "engine": "pg"}}),
    ("create", "broken", {"spec": {"users": ["a"]}}),
    ("patch", "main", {"spec": {"size": 3}}),
    ("patch", "main", {"spec": {"users": ["a", "c"]}}),
    ("patch", "main", {"spec": {"engine": "mysql"}}),
    ("delete", "broken"),
    ("delete", "main"),
]


@dataclasses.dataclass
class Reconciler:
    name: str

    def ensure(self, spec):
        for user in spec["users"]:
            doc = {"kind": "Secret", "metadata": {"name": f"{self.name}-{user}"}}
            kopf.adopt(doc)
            note("secret", doc["metadata"]["name"], len(doc["metadata"]["ownerReferences"]))


class BadSpecError(kopf.PermanentError):
    pass


@kopf.on.resume(*EX)
@kopf.on.create(*EX, timeout=60, retries=5, backoff=0.3)
def create_fn(spec, name, retry, patch, body, reason, **_):
    note("create", name, retry, str(reason))
    if "size" not in spec:
        raise BadSpecError(f"no size in {sorted(spec)}")
    if retry == 0 and reason == "create":
        raise RuntimeError("the network is down")
    Reconciler(name).ensure(spec)
    patch.status["phase"] = "Ready"
    patch.status.setdefault("conditions", []).append({"type": "Ready", "status": "True"})
    kopf.info(body, reason="Provisioned", message=f"size {spec['size']}")
    return {"users": len(spec["users"])}


@kopf.on.field(*EX, field="spec.size")
def resize(old, new, name, body, **_):
    note("size", name, old, new)
    if old is not None and new > old:
        kopf.event(body, type="Warning", reason="Resize", message="online resize")
    return new


@kopf.on.update(*EX, field="spec.users")
def users(diff, old, new, spec, name, **_):
    note("users", [(str(op), path, a, b) for op, path, a, b in diff], old, new)
    Reconciler(name).ensure(spec)


@kopf.on.update(*EX, field="spec.engine", errors=kopf.ErrorsMode.PERMANENT)
def engine(old, new, **_):
    raise ValueError(f"cannot migrate from {old} to {new}")


@kopf.on.delete(*EX, retries=2)
def drop(name, retry, **_):
    note("drop", name, retry)
    if retry == 0:
        raise kopf.TemporaryError("still in use", delay=0.5)
    if name == "broken":
        raise Exception("never mind")
