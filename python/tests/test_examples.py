"""The examples of ``examples/python`` do what they say."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import time
from typing import Any

import pytest

from kopf._engine.cluster import RequestError
from tests.operators import World, define

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "python"
MERGE = "application/merge-patch+json"


def url(plural: str, name: str = "") -> str:
    path = f"/apis/kopf.dev/v1/namespaces/default/{plural}"
    return f"{path}/{name}" if name else path


def run(world: World, example: str, *plurals: str) -> None:
    """Start an example with its objects."""
    import yaml

    objects = EXAMPLES / example / "objects.yaml"
    documents = list(yaml.safe_load_all(objects.read_text())) if objects.exists() else []
    kinds = {p: p.rstrip("s").capitalize() for p in plurals}
    definitions = [define("kopf.dev", kind, plural) for plural, kind in kinds.items()]
    world.cluster.install(None, [*definitions, *documents])
    world.start("-A", str(EXAMPLES / example / "operator.py"))


def status(world: World, plural: str, name: str) -> Any:
    return world.until(lambda: world.get(url(plural, name)).get("status"))


def test_minimal(world: World) -> None:
    run(world, "01-minimal", "greetings")
    assert status(world, "greetings", "first") == {"greet": {"message": "Hello, Rust!"}}
    world.stop()


def test_minimal_embedded(tmp_path: pathlib.Path) -> None:
    example = EXAMPLES / "01-minimal"
    command = [sys.executable, "-m", "kopf", "run", "--embedded", "--load"]
    command += [str(example / "objects.yaml"), str(example / "operator.py")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "Creation is processed" in line:
            break
    process.terminate()
    assert process.wait(timeout=20) == 0
    assert any("[default/first] first says: Hello, Rust!" in line for line in lines)


def test_activities(world: World) -> None:
    run(world, "16-activities", "greetings")
    world.says("The operator is starting.")
    assert status(world, "greetings", "first")["greet"].startswith("The operator was started in 20")
    world.stop()
    world.says("The operator has stopped.")


def test_changes(world: World) -> None:
    run(world, "02-changes", "bookcases")
    world.says("A new bookcase with 2 books.")
    world.says("Creation is processed")
    path = url("bookcases", "novels")
    world.cluster.request("PATCH", path, {"spec": {"place": "attic"}}, content_type=MERGE)
    world.says("spec.place: change 'hall' -> 'attic'")
    world.says("Moved from hall to attic.")
    world.says("Updating is processed")
    world.cluster.request("DELETE", path)
    world.says("the bookcase can go")
    world.until(lambda: world.get(path) is None)
    world.stop()


def test_errors(world: World) -> None:
    run(world, "03-errors", "orders")
    assert status(world, "orders", "good") == {"pay": {"paid": 10}}
    world.says("Handler 'pay' failed permanently: A payment cannot be negative.")
    world.says("Handler 'advertise' failed with an exception and will ignore it")
    world.stop()


def test_events(world: World) -> None:
    run(world, "04-events")
    world.says("LISTED: watched")
    found = world.until(lambda: world.get("/api/v1/namespaces/default/events")["items"])
    assert "Noted" in [event["reason"] for event in found]
    world.stop()


def test_filters(world: World) -> None:
    run(world, "05-filters", "parcels")
    world.says("piano needs a truck.")
    world.says("piano needs care.")
    world.says("mystery needs a scale.")
    world.says("[default/piano] Creation is processed")
    path = url("parcels", "piano")
    world.cluster.request("PATCH", path, {"spec": {"state": "received"}}, content_type=MERGE)
    world.says("piano has arrived.")
    assert "mystery needs a truck" not in world.text()
    world.stop()


def test_subhandlers(world: World) -> None:
    run(world, "06-subhandlers", "dinners")
    wanted = {"cook/soup": "soup is ready", "cook/souffle": "souffle is ready"}
    world.until(lambda: status(world, "dinners", "tonight") == wanted)
    world.stop()


def test_daemons(world: World) -> None:
    run(world, "07-daemons", "clocks")
    world.says("Tick at the market.")
    world.until(lambda: world.get(url("clocks", "tower"))["metadata"].get("finalizers"))
    world.cluster.request("DELETE", url("clocks", "tower"))
    world.says("The clock is stopped.")
    world.says("The watchman goes home")
    world.until(lambda: world.get(url("clocks", "tower")) is None)
    world.stop()


def test_timers(world: World) -> None:
    run(world, "08-timers", "plants")
    world.until(lambda: status(world, "plants", "ficus")["height"] >= 3)
    world.says("Nobody has touched ficus for a while")
    world.stop()


def test_indexes(world: World) -> None:
    run(world, "09-indexes", "guests", "tables")
    wanted = {"count": {"guests": ["ann", "bob"], "first": "ann"}}
    assert status(world, "tables", "round") == wanted
    world.stop()


def test_admission(world: World) -> None:
    run(world, "10-admission", "tickets")
    webhooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/auto.kopf.dev"
    world.until(lambda: (world.get(webhooks) or {}).get("webhooks"))
    time.sleep(0.5)  # the other configuration is written at about the same time
    ticket: dict[str, Any] = {"apiVersion": "kopf.dev/v1", "kind": "Ticket"}
    free = ticket | {"metadata": {"name": "free"}, "spec": {}}
    made = world.cluster.request("POST", url("tickets"), free)
    assert made["spec"] == {"price": 10}
    bad = ticket | {"metadata": {"name": "bad"}, "spec": {"price": -1}}
    with pytest.raises(RequestError, match="cannot cost less than nothing"):
        world.cluster.request("POST", url("tickets"), bad)
    world.stop()


def test_children(world: World) -> None:
    pytest.importorskip("kubernetes")
    run(world, "11-children", "sites")
    assert status(world, "sites", "home") == {"create_pages": {"pages": 2}}
    maps = world.get("/api/v1/namespaces/default/configmaps?labelSelector=page")["items"]
    assert sorted(m["metadata"]["labels"]["page"] for m in maps) == ["about", "index"]
    assert {m["metadata"]["ownerReferences"][0]["name"] for m in maps} == {"home"}
    world.stop()


def test_embedding(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.cluster.install(None, [define("kopf.dev", "Greeting", "greetings")])
    monkeypatch.setenv("KUBECONFIG", str(world.kubeconfig))
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / "12-embedding" / "application.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    one = {"apiVersion": "kopf.dev/v1", "kind": "Greeting", "metadata": {"name": "one"}}
    world.cluster.request("POST", url("greetings"), one)
    line = process.stdout.readline()
    assert "The application greets one." in line
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.wait(timeout=20) == 0


def test_desired(world: World) -> None:
    run(world, "13-desired", "sites")
    world.until(lambda: status(world, "sites", "home").get("pages") == 2)
    pages = "/api/v1/namespaces/default/configmaps/home-index"
    world.cluster.request("DELETE", pages)
    world.until(lambda: world.get(pages))
    spec = {"spec": {"pages": {"index": "Bye", "about": None}}}
    world.cluster.request("PATCH", url("sites", "home"), spec, content_type=MERGE)
    world.until(lambda: world.get(pages)["data"] == {"text": "Bye"})
    world.until(lambda: status(world, "sites", "home").get("pages") == 1)

    def is_ready() -> bool:
        conditions = status(world, "sites", "home").get("conditions", [])
        return any(it["type"] == "Ready" and it["status"] == "True" for it in conditions)

    world.until(is_ready)
    assert world.get("/api/v1/namespaces/default/services/home")
    world.stop()


def test_typed(tmp_path: pathlib.Path) -> None:
    example = EXAMPLES / "14-typed"
    command = [sys.executable, "-m", "kopf", "run", "--embedded", "--load"]
    command += [str(example / "objects.yaml"), str(example / "operator.py")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if "Creation is processed" in line:
            break
    process.terminate()
    assert process.wait(timeout=20) == 0
    wanted = "[default/margherita] A small pizza with 2 toppings in 8 pieces."
    assert any(wanted in line for line in lines), lines


def test_testing() -> None:
    example = EXAMPLES / "15-testing"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["-p", "kopf._engine.fixtures", "-c", "/dev/null", "--rootdir", str(example)]
    done = subprocess.run([*command, str(example)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr
