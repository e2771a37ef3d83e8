"""An operator for the real Kopf: create, update and delete handlers, a timer, a daemon and webhooks."""

import asyncio
import os

import kopf


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = True
    settings.watching.server_timeout = 30
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        host="localhost",
        certfile=os.environ["CERTIFICATE"],
        pkeyfile=os.environ["PRIVATE_KEY"],
        cafile=os.environ["AUTHORITY"],
    )
    settings.admission.managed = f"{os.environ['NAMESPACE']}.kopf.dev"


@kopf.on.create("kopf.dev", "v1", "kopfexamples")
def create_fn(spec, body, **_):
    kopf.info(body, reason="Created", message="seen by create_fn")
    return {"message": f"hello {spec.get('field')}"}


@kopf.on.create("kopf.dev", "v1", "kopfexamples")
def retried_fn(retry, **_):
    if retry < 1:
        raise kopf.TemporaryError("not yet", delay=0.1)
    return retry


@kopf.on.update("kopf.dev", "v1", "kopfexamples", field="spec.field")
def update_fn(old, new, **_):
    return f"{old}->{new}"


@kopf.on.delete("kopf.dev", "v1", "kopfexamples")
def delete_fn(logger, **_):
    logger.info("deleting, as asked")


@kopf.timer("kopf.dev", "v1", "kopfexamples", interval=0.2)
def tick(patch, status, **_):
    patch.status["ticks"] = status.get("ticks", 0) + 1


@kopf.daemon("kopf.dev", "v1", "kopfexamples", cancellation_timeout=1.0)
async def watcher(patch, stopped, **_):
    patch.status["daemon"] = "started"
    await asyncio.sleep(0.1)


def is_ours(namespace, **_):
    return namespace == os.environ["NAMESPACE"]


@kopf.on.validate("kopf.dev", "v1", "kopfexamples", when=is_ours)
def check(spec, warnings, **_):
    if spec.get("field") == "forbidden":
        raise kopf.AdmissionError("this field value is forbidden", code=418)
    warnings.append("checked by kopf")


@kopf.on.mutate("kopf.dev", "v1", "kopfexamples", operations=["CREATE"], when=is_ours)
def inject(patch, **_):
    patch.spec["injected"] = True
