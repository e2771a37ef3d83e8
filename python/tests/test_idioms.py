"""Operators in the style of well-known public ones, with the client libraries that they use."""

from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Any

import pytest

from tests.operators import PYTHON, World, define

SCRIPTS = pathlib.Path(__file__).parent / "idioms"
GROUP = "/apis/example.dev/v1/namespaces/default/volumes"
CORE = "/api/v1/namespaces/default"


@pytest.fixture
def volumes(world: World) -> World:
    world.cluster.install(None, [define("example.dev", "Volume", "volumes")])
    return world


def start(world: World, script: str) -> None:
    world.start("-A", "--standalone", "--verbose", str(SCRIPTS / script))


def launch(world: World, script: str, *args: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a script by itself, without the command."""
    environment = {**os.environ, "KUBECONFIG": str(world.kubeconfig)}
    output = open(world.output, "ab")
    process = subprocess.Popen(
        [PYTHON, str(SCRIPTS / script), *args],
        env=environment,
        stdout=output,
        stderr=output,
        **options,
    )
    output.close()
    world.processes.append(process)
    return process


def create(world: World, name: str = "one", spec: Any = None, **meta: Any) -> None:
    body = {"apiVersion": "example.dev/v1", "kind": "Volume", "metadata": {"name": name, **meta}}
    world.cluster.request("POST", GROUP, body | {"spec": spec or {"size": "1Gi"}})


def patch(world: World, body: Any, name: str = "one") -> None:
    merge = "application/merge-patch+json"
    world.cluster.request("PATCH", f"{GROUP}/{name}", body, content_type=merge)


def status(world: World, key: str, name: str = "one") -> Any:
    """Wait for a field of the status."""

    def find() -> Any:
        found = (world.get(f"{GROUP}/{name}") or {}).get("status") or {}
        return [found[key]] if key in found else None

    return world.until(find)[0]


def child(world: World, path: str) -> Any:
    return world.until(lambda: world.get(f"{CORE}/{path}"))


def test_the_official_client_is_configured_by_the_default_login(volumes: World) -> None:
    pytest.importorskip("kubernetes")
    start(volumes, "volumes_with_kubernetes.py")
    create(volumes)
    assert status(volumes, "create_fn") == {"pvc-name": "one"}
    claim = child(volumes, "persistentvolumeclaims/one")
    assert claim["metadata"]["ownerReferences"][0]["kind"] == "Volume"
    patch(volumes, {"metadata": {"labels": {"a": "b"}}})
    path = f"{CORE}/persistentvolumeclaims/one"
    volumes.until(lambda: volumes.get(path)["metadata"].get("labels", {}).get("a") == "b")
    volumes.stop()


def test_the_asynchronous_client_works_in_the_same_loop(volumes: World) -> None:
    pytest.importorskip("kubernetes_asyncio")
    start(volumes, "secrets_with_kubernetes_asyncio.py")
    create(volumes)
    assert status(volumes, "secret") == "one-secret"
    secret = child(volumes, "secrets/one-secret")
    assert secret["metadata"]["ownerReferences"][0]["name"] == "one"
    patch(volumes, {"spec": {"size": "2Gi"}})
    path = f"{CORE}/secrets/one-secret"
    volumes.until(lambda: volumes.get(path)["data"]["size"] == "Mkdp" or None)
    volumes.stop()


def test_pykube_objects_are_created_and_updated_in_threads(volumes: World) -> None:
    pytest.importorskip("pykube")
    start(volumes, "configmaps_with_pykube.py")
    create(volumes)
    assert status(volumes, "ensure") == {"child": "one"}
    patch(volumes, {"spec": {"size": "7"}})
    volumes.until(lambda: child(volumes, "configmaps/one")["data"]["size"] == "7")
    volumes.stop()


def test_lightkube_works_in_the_same_loop_with_own_storages(volumes: World) -> None:
    pytest.importorskip("lightkube")
    start(volumes, "services_with_lightkube.py")
    create(volumes)
    assert status(volumes, "create") == "one-light"
    meta = volumes.get(f"{GROUP}/one")["metadata"]
    assert meta["finalizers"] == ["volumes.kopf.dev/finalizer"]
    assert "my-op.dev/last-handled-configuration" in meta["annotations"]
    volumes.cluster.request("DELETE", f"{GROUP}/one")
    volumes.until(lambda: volumes.get(f"{GROUP}/one") is None)
    assert volumes.get(f"{CORE}/configmaps/one-light") is None
    volumes.stop()


def test_a_web_application_shares_the_loop(volumes: World) -> None:
    pytest.importorskip("httpx")
    start(volumes, "web_in_the_same_loop.py")
    create(volumes)
    assert status(volumes, "create") == {"first": "one", "second": "one"}
    assert status(volumes, "polled") == 200
    volumes.says("consumed one")
    volumes.stop()
    assert "Traceback" not in volumes.text()


def test_an_operator_lives_in_a_thread_of_an_application(volumes: World) -> None:
    process = launch(volumes, "operator_in_a_thread.py", stdin=subprocess.PIPE)
    volumes.says("the application is ready")
    create(volumes)
    assert status(volumes, "create") is True
    assert process.stdin is not None
    process.stdin.write(b"input\n")
    process.stdin.close()
    assert process.wait(60) == 0, volumes.text()
    volumes.processes.clear()
    assert "the application got input" in volumes.text()
    assert "the application has seen ['one']" in volumes.text()


def test_an_own_registry_with_methods_partials_and_an_own_executor(volumes: World) -> None:
    launch(volumes, "own_registry_and_executor.py")
    create(volumes)
    assert status(volumes, "Controller.create") == {"thread": "mine"}
    assert status(volumes, "part") == "given one"
    patch(volumes, {"spec": {"size": "2Gi"}})
    assert status(volumes, "changed") == ["change"]
    volumes.stop()


def test_indexes_have_tuples_as_keys_and_objects_as_values(volumes: World) -> None:
    start(volumes, "indexes_with_tuples.py")
    create(volumes, spec={"app": "web"})
    for name in ("b", "a"):
        meta = {"name": name, "labels": {"app": "web"}}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        volumes.cluster.request("POST", f"{CORE}/configmaps", body)
    found = status(volumes, "join")
    assert found["plain"] is True and "b" in found["sources"]
    patch(volumes, {"spec": {"again": True}})
    volumes.until(lambda: status(volumes, "join")["sources"] == ["a", "b"])
    volumes.stop()


def test_subhandlers_are_declared_in_all_ways(volumes: World) -> None:
    start(volumes, "subhandlers_of_many_kinds.py")
    create(volumes, spec={"items": ["x", "flaky"]})
    assert status(volumes, "in_a_thread") == "parent"
    found = volumes.until(
        lambda: (
            volumes.get(f"{GROUP}/one")["status"]
            if "executed_from_a_thread" in s_keys(volumes)
            and "in_the_loop/flaky" in s_keys(volumes)
            and "in_the_loop/0" in s_keys(volumes)
            else None
        )
    )
    assert found["in_a_thread/item-x"] == "x"
    assert found["in_a_thread/registered"] == {"handled": "flaky"}
    assert found["in_the_loop/x"] == {"handled": "x"}
    assert found["in_the_loop/0"] == {"handled": "numbered"}
    assert found["executed_from_a_thread/inner"] == "inner"
    assert found["executed_from_a_thread"] == "outer"
    volumes.stop()


def s_keys(world: World) -> set[str]:
    return set(world.get(f"{GROUP}/one").get("status") or {})


def test_daemons_timers_probes_and_replaced_settings(volumes: World) -> None:
    start(volumes, "daemons_and_settings.py")
    create(volumes, labels={"watched": "yes"}, spec={"size": "1Gi"})
    assert status(volumes, "fails_once") == 1
    assert status(volumes, "ticks") == 3
    volumes.cluster.request("DELETE", f"{GROUP}/one")
    volumes.until(lambda: volumes.get(f"{GROUP}/one") is None)
    volumes.says("note: we are cancelled")
    volumes.stop()


def test_builtin_resources_and_everything_are_watched(volumes: World) -> None:
    start(volumes, "events_of_pods.py")
    meta = {"name": "a", "labels": {"managed": "yes", "counted": "yes"}}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
    volumes.cluster.request("POST", f"{CORE}/configmaps", body)
    volumes.until(lambda: child(volumes, "configmaps/a").get("data") == {"extra": "1"})
    create(volumes, spec={"mode": "x"}, annotations={"mode": "a"}, labels={"counted": "yes"})
    assert status(volumes, "chosen") == "a"
    assert status(volumes, "by_value/spec.mode") == "x"
    volumes.says("note: configmaps a")
    volumes.says("note: volumes one")
    reasons = lambda: {e["reason"] for e in volumes.get(f"{CORE}/events")["items"]}
    volumes.until(lambda: {"Chosen", "Custom"} <= reasons())
    volumes.stop()


def test_kwargs_are_kept_copied_and_used_in_other_threads(volumes: World) -> None:
    start(volumes, "events_and_threads.py")
    create(volumes, spec={"size": 1})
    assert status(volumes, "create") == ["size"]
    assert status(volumes, "copied") == {"size": 1}
    assert status(volumes, "merged") == {"size": 1, "more": True}
    patch(volumes, {"spec": {"size": 2}})
    assert status(volumes, "update") == {
        "old": {"size": 1},
        "new": {"size": 2},
        "before": {"size": 1},
    }
    volumes.says("note: from a thread")
    volumes.until(
        lambda: any(e["reason"] == "Thread" for e in volumes.get(f"{CORE}/events")["items"])
    )
    volumes.stop()


def enter(process: subprocess.Popen[bytes]) -> None:
    """Press Enter in an application."""
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()


def test_an_operator_is_a_part_of_an_application_with_own_tasks(volumes: World) -> None:
    process = launch(volumes, "application_with_own_tasks.py", stdin=subprocess.PIPE)
    volumes.says("the operator is ready")
    create(volumes)
    assert status(volumes, "create") == {"memo": "Memo", "text": "limit 7", "is_copy": True}
    enter(process)
    assert process.wait(60) == 0, volumes.text()
    volumes.processes.clear()
    volumes.says("the operator cleans up")
    volumes.says("the heart still beats: True")
    volumes.says("tasks left: 0")


def test_the_runner_of_tests_runs_the_command(volumes: World) -> None:
    create(volumes)
    path = str(SCRIPTS / "runner_of_tests.py")
    process = launch(volumes, "runner_of_tests.py", path, "8")
    assert process.wait(90) == 0, volumes.text()
    volumes.processes.clear()
    volumes.says("the runner has passed")
    volumes.says("failed with 1, FileNotFoundError")


def test_several_operators_live_in_one_process(volumes: World) -> None:
    process = launch(volumes, "several_operators.py", stdin=subprocess.PIPE)
    volumes.says("both are ready")
    for name in ("first", "second"):
        create(volumes, name, labels={"operator": name})
        assert status(volumes, name, name) == name
    enter(process)
    volumes.says("the first has stopped")
    create(volumes, "later", labels={"operator": "second"})
    assert status(volumes, "second", "later") == "second"
    enter(process)
    assert process.wait(60) == 0, volumes.text()
    volumes.processes.clear()
    assert "Traceback" not in volumes.text()


def test_an_operator_is_reloaded_and_its_indexes_are_read_outside(volumes: World) -> None:
    create(volumes, "other", spec={"size": "5Gi"})
    launch(volumes, "reloaded_with_indexers.py")
    create(volumes, labels={"handled": "yes"})
    expected = {
        "found": {"1Gi": ["one"], "5Gi": ["other"]},
        "known": True,
        "indices": ["by_size", "names"],
    }
    assert status(volumes, "round-1") == expected
    create(volumes, "config", spec={"round": 2})
    volumes.says("round 1 ends, reloaded: True")
    create(volumes, "two", labels={"handled": "yes"}, spec={"size": "1Gi"})
    assert status(volumes, "round-2", "two")["found"]["1Gi"] == ["one", "two"]
    volumes.stop()
    volumes.says("round 2 ends, reloaded: False")
    assert "Traceback" not in volumes.text()


def test_a_script_calls_the_command_by_itself(volumes: World) -> None:
    launch(volumes, "command_of_its_own.py", "--greeting", "hi", "-A", "--standalone")
    create(volumes)
    assert status(volumes, "create") == "hi one"
    volumes.stop()
