import os

from crosslib import note

import kopf

STEPS = [
    ["create", "arbitrary", {"spec": {"error": "arbitrary"}}],
    ["create", "temporary", {"spec": {"error": "temporary"}}],
    ["create", "coded", {"spec": {"error": "coded"}}],
    ["create", "filtered", {"spec": {"error": None}}],
    ["create", "fine", {"spec": {"error": "none"}}],
]
# We say that a request is denied, and not that a handler has failed.
DIFFERS = ["lines"]
RACES = True
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.startup()
def configure(settings, **_):
    folder = os.environ["CROSS_CERTIFICATES"]
    files = {"certfile": f"{folder}/cert.pem", "pkeyfile": f"{folder}/pkey.pem"}
    settings.admission.managed = "auto.kopf.dev"
    settings.admission.server = kopf.WebhookServer(host="localhost", **files)


@kopf.on.validate(*EX, field="spec.error")
def first(spec, param, **_):
    value = spec["error"]
    note("first", value, param)
    if value == "arbitrary":
        raise ValueError("unexpected")
    if value == "temporary":
        raise kopf.TemporaryError("later", delay=10)
    if value == "coded":
        raise kopf.AdmissionError("teapot", code=418)


@kopf.on.validate(*EX, when=lambda spec, **_: spec.get("error") != "none", param=7)
def second(warnings, param, **_):
    note("second", param)
    warnings.append("second")
