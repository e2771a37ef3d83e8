"""The fixture that the book shows: a cluster of one's own, from pytest, in any project."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kubernetes import client, config

from conftest import HERE, eventually

KOPF = os.environ.get("KOPF", "kopf")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    if not shutil.which(KOPF):
        pytest.skip("there is no `kopf`; `cargo xtask conformance` builds it")
    kubeconfig = tmp_path_factory.mktemp("kopf") / "kubeconfig"
    process = subprocess.Popen([KOPF, "cluster", "--port=0", f"--kubeconfig={kubeconfig}"])
    while not kubeconfig.exists():
        assert process.poll() is None, "kopf cluster did not start"
        time.sleep(0.01)
    yield str(kubeconfig)
    process.terminate()
    assert process.wait(timeout=10) == 0


def test_a_deployment_rolls_out(cluster):
    api = client.AppsV1Api(config.new_client_from_config(cluster))
    labels = {"app": "web"}
    container = client.V1Container(name="web", image="nginx")
    template = client.V1PodTemplateSpec(
        metadata=client.V1ObjectMeta(labels=labels),
        spec=client.V1PodSpec(containers=[container]),
    )
    spec = client.V1DeploymentSpec(
        replicas=2, selector=client.V1LabelSelector(match_labels=labels), template=template
    )
    metadata = client.V1ObjectMeta(name="web")
    api.create_namespaced_deployment("default", client.V1Deployment(metadata=metadata, spec=spec))
    status = lambda: api.read_namespaced_deployment_status("web", "default").status
    eventually(lambda: status().available_replicas == 2)


def test_the_fixture_of_the_book_runs_as_written(tmp_path):
    if not shutil.which(KOPF):
        pytest.skip("there is no `kopf`; `cargo xtask conformance` builds it")
    guide = (HERE.parent / "docs/src/cluster/guide.md").read_text()
    snippet = guide.split("```python\n")[1].split("```")[0]
    (tmp_path / "test_of_the_book.py").write_text(snippet)
    folder = str(Path(shutil.which(KOPF)).resolve().parent)
    environment = dict(os.environ, PATH=folder + os.pathsep + os.environ["PATH"])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_the_kubeconfig_is_for_its_owner_only(cluster):
    assert Path(cluster).stat().st_mode & 0o077 == 0
