"""Claims that are completed and checked by webhooks of Kopf's server, by labels and subresources."""

import os
import pathlib

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
# A denial is not a failure here.
DIFFERS = ["lines"]
# Both webhooks of an update are called at the same time.
RACES = True
STEPS = [
    ("create", "small", {"metadata": {"labels": {"plan": "free"}}, "spec": {"size": 1}}),
    ("create", "huge", {"metadata": {"labels": {"plan": "free"}}, "spec": {"size": 99}}),
    ("create", "plain", {"spec": {"size": 99}}),
    ("patch", "small", {"spec": {"size": 50}}),
    ("patch", "small", {"spec": {"owner": "them"}}),
    ("patch", "small", {"metadata": {"labels": {"plan": "paid"}}}),
    ("patch", "small", {"spec": {"size": 60}}),
    ("delete", "plain"),
    ("delete", "small"),
]


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    folder = pathlib.Path(os.environ["CROSS_CERTIFICATES"])
    settings.admission.server = kopf.WebhookServer(
        addr="localhost",
        host="localhost",
        certfile=str(folder / "cert.pem"),
        pkeyfile=str(folder / "pkey.pem"),
        cadata=(folder / "cert.pem").read_bytes(),
    )
    settings.admission.managed = "claims.kopf.dev"


@kopf.on.mutate(*EX, operation="CREATE")
async def complete(spec, patch, meta, name, uid, namespace, userinfo, memo, **_):
    note("complete", name, namespace, meta.get("labels"), sorted(userinfo)[:2])
    memo["completed"] = True
    patch.spec["owner"] = spec.get("owner", "us")
    patch.metadata.annotations["kopf.dev/completed"] = "yes"
    if "labels" not in meta:
        patch.metadata["labels"] = {"plan": "none"}


@kopf.on.validate(*EX, labels={"plan": "free"}, operations=["CREATE", "UPDATE"])
def limit(spec, warnings, operation, old, new, diff, param, **_):
    note("limit", operation, spec["size"], old is None, new is None, len(diff), param)
    if spec["size"] > 10:
        raise kopf.AdmissionError(f"{spec['size']} is too much", code=403)
    warnings.append("free plans have no backups")


@kopf.on.validate(*EX, operation="UPDATE", field="spec.owner", id="owner/check", param="fixed")
def owner(old, new, param, **_):
    note("owner", old["spec"]["owner"], new["spec"]["owner"], param)
    if old["spec"]["owner"] != new["spec"]["owner"]:
        raise kopf.PermanentError("the owner is fixed")


@kopf.on.validate(*EX, operation="DELETE", persistent=True)
def deletion(name, spec, reason, **_):
    note("deletion", name, dict(spec), reason)


@kopf.on.create(*EX)
@kopf.on.update(*EX, field="spec")
def handle(name, spec, annotations, reason, **_):
    note("handle", reason, name, dict(spec), annotations.get("kopf.dev/completed"))
