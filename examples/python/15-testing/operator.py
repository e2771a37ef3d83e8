"""An operator with retries and a timer; see the tests next to it."""

import kopf


@kopf.on.create("kopf.dev", "v1", "parcels", backoff=600)
def send(spec, retry, **_):
    if retry < spec.get("failures", 0):
        raise RuntimeError("the post office is closed")
    return {"attempts": retry + 1}


@kopf.timer("kopf.dev", "v1", "parcels", interval=24 * 3600, initial_delay=24 * 3600)
def remind(patch, status, **_):
    patch.status["days"] = status.get("days", 0) + 1
