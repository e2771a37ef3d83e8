"""Fixtures for real, unmodified clients against whatever server $KUBECONFIG points to."""

import os
import subprocess
import time
import uuid
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).parent

# Its fixtures are for several files of tests.
pytest_plugins = ["cross_check_world"]

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "kopfexamples.kopf.dev"},
    "spec": {
        "scope": "Namespaced",
        "group": "kopf.dev",
        "names": {
            "kind": "KopfExample",
            "plural": "kopfexamples",
            "singular": "kopfexample",
            "shortNames": ["kex"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                            "status": {
                                "type": "object",
                                "x-kubernetes-preserve-unknown-fields": True,
                            },
                        },
                    }
                },
                "additionalPrinterColumns": [
                    {"name": "Field", "type": "string", "jsonPath": ".spec.field"}
                ],
            }
        ],
    },
}


def run(*arguments, stdin=None, check=True):
    """Runs a command and returns its standard output; fails with both streams shown."""
    done = subprocess.run(arguments, input=stdin, capture_output=True, text=True, timeout=60)
    if check and done.returncode != 0:
        raise AssertionError(f"{arguments} exited {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def eventually(check, timeout=20.0):
    """Waits until the check returns something true, and returns it."""
    deadline = time.monotonic() + timeout
    while True:
        result = check()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {check}")
        time.sleep(0.05)


@pytest.fixture(scope="session")
def kubeconfig():
    path = os.environ.get("KUBECONFIG")
    if not path:
        pytest.exit("set KUBECONFIG, or use `cargo xtask conformance`", returncode=2)
    return path


@pytest.fixture(scope="session")
def kubectl(kubeconfig):
    binary = os.environ.get("KUBECTL", "kubectl")
    return lambda *arguments, **options: run(binary, *arguments, **options)


@pytest.fixture(scope="session")
def crd(kubectl):
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(CRD))
    kubectl("wait", "--for=condition=Established", "crd/kopfexamples.kopf.dev", "--timeout=20s")
    return CRD


@pytest.fixture
def namespace(kubectl):
    name = f"clients-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")
