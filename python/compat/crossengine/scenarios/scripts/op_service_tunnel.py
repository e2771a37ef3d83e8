"""A webhook server behind a service: a class that changes the configuration of Kopf's server."""

import base64
import os
import pathlib

from crosslib import note

import kopf

# A denial is not a failure here.
DIFFERS = ["lines"]
STEPS = [
    ("create", "one", {"spec": {"field": "bad"}}),
    ("create", "two", {"spec": {"field": "good"}}),
]


class Tunnel:
    async def __call__(self, fn):
        folder = pathlib.Path(os.environ["CROSS_CERTIFICATES"])
        server = kopf.WebhookServer(
            addr="127.0.0.1",
            host="localhost",
            port=None,
            certfile=folder / "cert.pem",
            pkeyfile=folder / "pkey.pem",
            cafile=folder / "cert.pem",
        )
        async for config in server(fn):
            note("config", sorted(config), config["url"].startswith("https://localhost:"))
            bundle = base64.b64decode(config["caBundle"])
            note("bundle", bundle.startswith(b"-----BEGIN CERTIFICATE-----"))
            config["service"] = None
            yield config


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.peering.priority = 110
    settings.peering.name = "dependent"
    settings.admission.server = Tunnel()
    settings.admission.managed = "depapi.mutate.kopf"
    settings.watching.server_timeout = 1 * 60


@kopf.on.mutate("kopfexamples", id="set-namespace", labels={"skipped": kopf.ABSENT})
def fill(spec, patch, warnings, operation, **_):
    note("fill", operation)
    patch.spec.setdefault("namespaces", {}).setdefault("own", spec.get("field"))


@kopf.on.validate("kopfexamples", operations=["CREATE", "UPDATE"], field="spec.field")
async def check(value=None, spec=None, dryrun=None, **_):
    note("check", dict(spec), dryrun)
    if spec.get("field") == "bad":
        raise kopf.AdmissionError("Fields must be good.")
