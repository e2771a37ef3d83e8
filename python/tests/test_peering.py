"""Several operators for the same objects: freezing, resuming, priorities."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys

import pytest

from kopf._run import identity
from tests.operators import World, define

PEERINGS = "/apis/kopf.dev/v1/clusterkopfpeerings/default"
PATH = "/apis/kopf.dev/v1/namespaces/default/kopfexamples"
SCRIPT = """
import kopf

@kopf.on.login()
def login(**kwargs):
    return kopf.login_with_kubeconfig(**kwargs)

@kopf.on.create('kopfexamples')
def create(**_):
    return 'done'
"""


def test_names_of_hosts_come_from_replaced_functions_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "my-host.local")
    monkeypatch.setattr(socket, "gethostbyaddr", lambda name: (name, [], []))
    assert identity.get_descriptive_hostname() == "my-host"


@pytest.fixture
def peers(world: World) -> World:
    definition = define("kopf.dev", "ClusterKopfPeering", "clusterkopfpeerings")
    definition["spec"]["scope"] = "Cluster"
    peering = {
        "apiVersion": "kopf.dev/v1",
        "kind": "ClusterKopfPeering",
        "metadata": {"name": "default"},
    }
    examples = define("kopf.dev", "KopfExample", "kopfexamples")
    world.cluster.install(None, [definition, examples, peering])
    return world


def kopf(world: World, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KUBECONFIG": str(world.kubeconfig)}
    command = [sys.executable, "-m", "kopf", *args]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def create(world: World, name: str) -> None:
    body = {"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": {"name": name}}
    world.cluster.request("POST", PATH, body)


def test_a_frozen_operator_goes_on_after_resume(peers: World, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    peers.start("-A", "--peering=default", "--verbose", str(script))
    create(peers, "one")
    peers.until(lambda: peers.get(f"{PATH}/one").get("status"))

    frozen = kopf(peers, "freeze", "-A", "-P", "default", "-p", "200", "-t", "60", "-i", "me")
    assert frozen.returncode == 0, frozen.stderr
    assert peers.get(PEERINGS)["status"]["me"]["priority"] == 200
    peers.says("Pausing operations in favour of")
    create(peers, "two")

    resumed = kopf(peers, "resume", "-A", "--peering=default", "--id=me")
    assert resumed.returncode == 0, resumed.stderr
    peers.says("Resuming operations after the pause")
    peers.until(lambda: peers.get(f"{PATH}/two").get("status"))
    peers.stop()
    assert not peers.get(PEERINGS).get("status")


def test_freeze_needs_a_peering(peers: World) -> None:
    done = kopf(peers, "freeze", "-A", "-t", "5")
    assert done.returncode == 2 and "Missing option '-P' / '--peering'" in done.stderr
