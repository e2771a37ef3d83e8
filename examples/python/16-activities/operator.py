"""Handlers of the operator itself: settings, credentials, probes, and cleanup."""

import datetime

import kopf


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, memo: kopf.Memo, logger, **_):
    settings.execution.max_workers = 20
    memo.started = datetime.datetime.now(datetime.timezone.utc)
    logger.info("The operator is starting.")


@kopf.on.login(retries=3)
def login(**kwargs):
    return kopf.login_with_service_account(**kwargs) or kopf.login_with_kubeconfig(**kwargs)


@kopf.on.probe(id="uptime")
def uptime(memo: kopf.Memo, **_):
    return (datetime.datetime.now(datetime.timezone.utc) - memo.started).total_seconds()


@kopf.on.cleanup()
async def leave(logger, **_):
    logger.info("The operator has stopped.")


@kopf.on.create("kopf.dev", "v1", "greetings")
def greet(memo: kopf.Memo, **_):
    return f"The operator was started in {memo.started.year}."
