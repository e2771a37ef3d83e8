"""Checking and changing objects before they are stored."""

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.admission.server = kopf.WebhookServer(addr="127.0.0.1")
    settings.admission.managed = "auto.kopf.dev"


@kopf.on.validate("kopf.dev", "v1", "tickets", operations=["CREATE", "UPDATE"])
def check(spec, warnings, **_):
    if spec.get("price", 0) < 0:
        raise kopf.AdmissionError("A ticket cannot cost less than nothing.", code=422)
    if spec.get("price", 0) > 1000:
        warnings.append("This is an expensive ticket.")


@kopf.on.mutate("kopf.dev", "v1", "tickets", operations=["CREATE"])
def complete(spec, patch, **_):
    if "price" not in spec:
        patch.spec["price"] = 10
