"""Kopf from PyPI runs its operators here unmodified."""

import json
import os
import signal
import subprocess
import sys

import pytest
import trustme
import yaml

from conftest import HERE, eventually

FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"
LAST_HANDLED = "kopf.zalando.org/last-handled-configuration"


@pytest.fixture
def operator(kubectl, namespace, crd, tmp_path):
    log = (tmp_path / "kopf.log").open("w+")
    command = [sys.executable, "-m", "kopf", "run", "--verbose", "-n", namespace]
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    paths = {name: tmp_path / f"{name}.pem" for name in ("AUTHORITY", "CERTIFICATE", "PRIVATE_KEY")}
    authority.cert_pem.write_to_path(paths["AUTHORITY"])
    certificate.cert_chain_pems[0].write_to_path(paths["CERTIFICATE"])
    certificate.private_key_pem.write_to_path(paths["PRIVATE_KEY"])
    files = {name: str(path) for name, path in paths.items()}
    process = subprocess.Popen(
        [*command, str(HERE / "operator_under_test.py")],
        env={**os.environ, **files, "NAMESPACE": namespace},
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    configured = ("get", "mutatingwebhookconfigurations", f"{namespace}.kopf.dev", "-o", "json")
    eventually(lambda: '"caBundle"' in kubectl(*configured, check=False))
    yield process
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=20)
    for kind in ("validating", "mutating"):
        kubectl("delete", f"{kind}webhookconfigurations", f"{namespace}.kopf.dev")
    log.seek(0)
    print(log.read())


def test_a_life_of_an_object_under_kopf(operator, kubectl, namespace):
    example = {
        "apiVersion": "kopf.dev/v1",
        "kind": "KopfExample",
        "metadata": {"name": "one", "namespace": namespace},
        "spec": {"field": "value"},
    }

    def get():
        text = kubectl("get", "kex", "one", "-n", namespace, "-o", "json", check=False)
        return json.loads(text) if text else None

    forbidden = {**example, "spec": {"field": "forbidden"}}
    with pytest.raises(AssertionError, match="this field value is forbidden"):
        kubectl("create", "-f", "-", stdin=yaml.safe_dump(forbidden))

    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(example))
    created = eventually(lambda: (o := get()) and LAST_HANDLED in o["metadata"]["annotations"] and o)
    assert created["spec"] == {"field": "value", "injected": True}
    assert FINALIZER in created["metadata"]["finalizers"]
    assert created["status"]["create_fn"] == {"message": "hello value"}
    assert created["status"]["retried_fn"] == 1

    eventually(lambda: get()["status"].get("ticks", 0) >= 2)
    eventually(lambda: get()["status"].get("daemon") == "started")

    kubectl("patch", "kex", "one", "-n", namespace, "--type=merge", "-p", '{"spec":{"field":"new"}}')
    eventually(lambda: get()["status"].get("update_fn/spec.field") == "value->new")

    described = eventually(
        lambda: (text := kubectl("describe", "kex", "one", "-n", namespace))
        and "seen by create_fn" in text
        and text
    )
    assert "Created" in described

    kubectl("delete", "kex", "one", "-n", namespace, "--timeout=20s")
    assert get() is None
