"""Kopf from PyPI runs its operators here unmodified."""

import json
import signal
import subprocess
import sys

import pytest
import yaml

from conftest import HERE, eventually

FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"
LAST_HANDLED = "kopf.zalando.org/last-handled-configuration"


@pytest.fixture
def operator(namespace, crd, tmp_path):
    log = (tmp_path / "kopf.log").open("w+")
    command = [sys.executable, "-m", "kopf", "run", "--verbose", "-n", namespace]
    process = subprocess.Popen(
        [*command, str(HERE / "operator_under_test.py")], stdout=log, stderr=subprocess.STDOUT
    )
    yield process
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=20)
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

    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(example))
    created = eventually(lambda: (o := get()) and LAST_HANDLED in o["metadata"]["annotations"] and o)
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
