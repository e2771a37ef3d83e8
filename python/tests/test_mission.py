"""Operators from public introductions to Kopf run unchanged."""

from __future__ import annotations

import pathlib
import shutil

import pytest

from tests.operators import World, define

MISSION = pathlib.Path(__file__).parent / "mission"
EXAMPLES = "/apis/zalando.org/v1/namespaces/default/kopfexamples"
OBJECT = {
    "apiVersion": "zalando.org/v1",
    "kind": "KopfExample",
    "metadata": {"name": "kopf-example-1", "labels": {"somelabel": "somevalue"}},
    "spec": {"duration": "1m", "field": "value", "items": ["item1", "item2"]},
}


def test_talk_minimal_says_hello_and_writes_the_status(world: World) -> None:
    world.cluster.install(None, [define("zalando.org", "KopfExample", "kopfexamples"), OBJECT])
    world.start("-A", str(MISSION / "talk_minimal.py"))
    world.says(
        "And here we are! Creating: "
        "{'duration': '1m', 'field': 'value', 'items': ['item1', 'item2']}"
    )
    world.says("[default/kopf-example-1] Handler 'create_fn' succeeded.")
    found = world.until(lambda: world.get(f"{EXAMPLES}/kopf-example-1").get("status"))
    assert found == {"create_fn": {"message": "hello world"}}
    world.stop()


def test_talk_spies_see_events_and_errors_are_ignored(world: World) -> None:
    world.cluster.install(None, [define("zalando.org", "KopfExample", "kopfexamples"), OBJECT])
    world.start("-A", str(MISSION / "talk_spy.py"))
    world.says("Event received: {'type': None")
    world.says("will ignore it: Oops!")
    world.cluster.request("DELETE", f"{EXAMPLES}/kopf-example-1")
    world.says("Event received: {'type': 'DELETED'")
    world.stop()


def test_talk_changes_are_told_apart(world: World) -> None:
    world.cluster.install(None, [define("zalando.org", "KopfExample", "kopfexamples"), OBJECT])
    world.start("-A", str(MISSION / "talk_changes.py"))
    world.says("CREATED 1st: field=value")
    world.says("CREATED 2nd: name=kopf-example-1")
    world.says("Creation is processed")
    merge = "application/merge-patch+json"
    path = f"{EXAMPLES}/kopf-example-1"
    world.cluster.request("PATCH", path, {"spec": {"field": "new"}}, content_type=merge)
    world.says("UPDATED: diff=(('change', ('spec', 'field'), 'value', 'new'),)")
    world.says("FIELD CHANGED: value -> new")
    world.says("Updating is processed")
    world.cluster.request("DELETE", path)
    world.says("DELETED")
    world.until(lambda: world.get(path) is None)
    world.stop()


def test_introduction_makes_a_pod_with_the_official_client(world: World) -> None:
    pytest.importorskip("kubernetes")
    document = {
        "apiVersion": "example.org/v1",
        "kind": "SimpleDeployment",
        "metadata": {"name": "example-01", "labels": {"app": "simple-app"}},
        "spec": {"sleepytime": "120"},
    }
    definition = define("example.org", "SimpleDeployment", "simpledeployments")
    world.cluster.install(None, [definition, document])
    world.start("-A", str(MISSION / "introduction.py"), "--verbose")
    path = "/apis/example.org/v1/namespaces/default/simpledeployments/example-01"
    status = world.until(lambda: world.get(path).get("status"))
    (pod,) = world.get("/api/v1/namespaces/default/pods")["items"]
    assert status == {"create_function": {"children": [pod["metadata"]["uid"]]}}
    assert pod["metadata"]["labels"] == {"app": "simple-app"}
    assert pod["metadata"]["generateName"] == "example-01-"
    assert [owner["name"] for owner in pod["metadata"]["ownerReferences"]] == ["example-01"]
    assert "Client is configured" in world.text()
    world.stop()


def test_training_deploys_with_kubectl(world: World, tmp_path: pathlib.Path) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    shutil.copytree(MISSION / "deploy", tmp_path / "deploy")
    sample = {
        "apiVersion": "nuvolaris.org/v1",
        "kind": "Sample",
        "metadata": {"name": "obj"},
        "spec": {"count": 2},
    }
    definition = define("nuvolaris.org", "Sample", "samples", subresource=True)
    world.cluster.install(None, [definition, sample])
    world.start("-n", "default", str(MISSION / "training.py"), cwd=tmp_path)
    deployment = "/apis/apps/v1/namespaces/default/deployments/demo-deploy"
    assert world.until(lambda: world.get(deployment))["spec"]["replicas"] == 2
    path = "/apis/nuvolaris.org/v1/namespaces/default/samples/obj"
    status = world.until(lambda: world.get(path).get("status"))
    assert status["sample_create"]["message"] == "deployment.apps/demo-deploy created\n"
    world.cluster.request("DELETE", path)
    world.until(lambda: world.get(path) is None and world.get(deployment) is None)
    world.stop()
