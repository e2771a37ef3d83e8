"""Logins that read kubeconfigs themselves, and fall back to others; memos with clients."""

import base64
import os

import yaml
from crosslib import note

import kopf

STEPS = [("create", "one", {"spec": {"field": 1}})]
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"


@kopf.on.login(errors=kopf.ErrorsMode.TEMPORARY, retries=5, backoff=1)
def by_hand(memo, retry, logger, **kwargs):
    note("login", retry, "settings" in kwargs, "registry" in kwargs)
    if os.path.isfile(TOKEN):
        return kopf.login_with_service_account(**kwargs)
    if not retry:
        raise kopf.TemporaryError("not ready", delay=0.1)
    with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
        config = yaml.safe_load(file)
    cluster = config["clusters"][0]["cluster"]
    user = config["users"][0]["user"]
    memo.logins = memo.get("logins", 0) + 1
    given = {}
    if "client-certificate-data" in user:
        given["certificate_data"] = base64.b64decode(user["client-certificate-data"])
        given["private_key_data"] = user["client-key-data"]
    else:
        given |= {"token": user["token"], "scheme": "Bearer"}
    return kopf.ConnectionInfo(
        server=cluster["server"],
        ca_data=cluster["certificate-authority-data"],
        default_namespace="default",
        priority=100,
        **given,
    )


@kopf.on.login(errors=kopf.ErrorsMode.PERMANENT, retries=1)
async def nothing(**_):
    return None


@kopf.on.probe(id="health")
def health(memo, **_):
    return {"status": "ok"}


@kopf.on.create("kopfexamples")
def create(memo, **_):
    note("create", memo.logins)
