"""Custom logins: with priorities, failing at first, from files; the client uses the same."""

import os

import yaml
from crosslib import note

import kopf

STEPS = [("create", "one", {"spec": {}}), ("delete", "one")]


@kopf.on.login(retries=3, backoff=0.1)
def fails_at_first(retry, **_):
    note("login", retry)
    if not retry:
        raise RuntimeError("not yet")
    return None


@kopf.on.login()
async def from_file(logger, **kwargs):
    note("kwargs", sorted(kwargs))
    config = yaml.safe_load(open(os.environ["KUBECONFIG"]))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    return kopf.ConnectionInfo(
        server=cluster["server"],
        ca_data=cluster.get("certificate-authority-data"),
        certificate_data=user.get("client-certificate-data"),
        private_key_data=user.get("client-key-data"),
        token=user.get("token"),
        default_namespace="default",
        priority=10,
    )


@kopf.on.create("kopfexamples")
async def create(**_):
    return "created"


@kopf.on.delete("kopfexamples")
async def delete(**_):
    note("deleted")
