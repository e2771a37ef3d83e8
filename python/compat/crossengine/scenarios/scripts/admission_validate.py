import os

from crosslib import note

import kopf

STEPS = [
    ["create", "good", {"spec": {"size": 1}}],
    ["create", "bad", {"spec": {"size": -1}}],
    ["create", "odd", {"spec": {"size": 13}}],
    ["create", "broken", {"spec": {}}],
    ["patch", "good", {"spec": {"size": 2}}],
    ["patch", "good", {"spec": {"size": -2}}],
    ["patch", "good", {"metadata": {"labels": {"locked": "yes"}}}],
    ["delete", "good"],
    ["patch", "good", {"metadata": {"labels": {"locked": None}}}],
    ["delete", "good"],
]
# We say that a request is denied, and not that a handler has failed.
DIFFERS = ["lines"]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.startup()
def configure(settings, **_):
    folder = os.environ["CROSS_CERTIFICATES"]
    files = {"certfile": f"{folder}/cert.pem", "pkeyfile": f"{folder}/pkey.pem"}
    settings.admission.managed = "auto.kopf.dev"
    settings.admission.server = kopf.WebhookServer(host="localhost", **files)


@kopf.on.validate(*EX, operations=["CREATE", "UPDATE"])
def check(spec, operation, dryrun, userinfo, warnings, **kwargs):
    note("check", operation, dict(spec), dryrun, userinfo.get("username"), sorted(kwargs))
    if spec["size"] == 13:
        warnings.append("unlucky")
    if spec["size"] < 0:
        raise kopf.AdmissionError("too small", code=418)


@kopf.on.validate(*EX, operations=["DELETE"], labels={"locked": "yes"})
async def keep(old, operation, name, **_):
    note("keep", operation, name)
    raise kopf.PermanentError("locked")
