"""Errors: retry later, give up, or let the framework decide."""

import kopf


@kopf.on.create("kopf.dev", "v1", "orders", retries=5, backoff=0.5)
def pay(spec, retry, **_):
    if spec["amount"] < 0:
        raise kopf.PermanentError("A payment cannot be negative.")
    if retry < 2:
        raise kopf.TemporaryError("The bank is closed.", delay=0.2)
    return {"paid": spec["amount"]}


@kopf.on.create("kopf.dev", "v1", "orders", errors=kopf.ErrorsMode.IGNORED)
def advertise(**_):
    raise RuntimeError("Nobody reads that anyway.")
