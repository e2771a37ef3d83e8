"""Operators of Kopf and of our engine pause for the `freeze` of either, and go on after its `resume`."""

import os
import signal
import subprocess
import sys

import pytest
import yaml

from conftest import eventually, run

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "kopfpeerings.kopf.dev"},
    "spec": {
        "scope": "Namespaced",
        "group": "kopf.dev",
        "names": {"kind": "KopfPeering", "plural": "kopfpeerings", "singular": "kopfpeering"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}

OPERATOR = """
import kopf

@kopf.on.create("kopf.dev", "v1", "kopfexamples")
def create_fn(**_):
    pass
"""

COMMANDS = {"kopf": [sys.executable, "-m", "kopf"], "ours": [os.environ.get("KOPF", "kopf")]}


@pytest.fixture
def peering(kubectl, namespace):
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(CRD))
    kubectl("wait", "--for=condition=Established", "crd/kopfpeerings.kopf.dev", "--timeout=20s")
    body = {
        "apiVersion": "kopf.dev/v1",
        "kind": "KopfPeering",
        "metadata": {"name": "shared", "namespace": namespace},
    }
    kubectl("apply", "-f", "-", stdin=yaml.safe_dump(body))
    return "shared"


@pytest.fixture(params=["kopf", "ours"])
def log(request, crd, namespace, peering, tmp_path):
    """What an operator prints that takes part in the peering."""
    script = tmp_path / "operator.py"
    script.write_text(OPERATOR)
    options = ["run", "-n", namespace, "--peering", peering]
    if request.param == "kopf":
        command = [*COMMANDS["kopf"], *options, str(script)]
    else:
        command = [os.environ["CROSS_CHECK"], *options]
    path = tmp_path / "operator.log"
    with path.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    yield path
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=20)


@pytest.mark.parametrize("command", COMMANDS)
def test_operators_pause_and_go_on(command, log, kubectl, namespace, peering):
    place = ["-n", namespace, "--peering", peering, "--id", "me@here"]
    status = ("get", "kopfpeering", peering, "-n", namespace, "-o", "jsonpath={.status}")
    eventually(lambda: "priority" in kubectl(*status))

    run(*COMMANDS[command], "freeze", *place, "--lifetime", "60", "--message", "a migration")
    eventually(lambda: "Pausing operations" in log.read_text())

    run(*COMMANDS[command], "resume", *place)
    eventually(lambda: "Resuming operations" in log.read_text())
    assert "me@here" not in kubectl(*status)
