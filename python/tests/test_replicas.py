"""Several replicas of one operator: standby and shards, in processes of their own."""

from __future__ import annotations

import pathlib
import re
import signal

import pytest

from tests.operators import World
from tests.test_process import DEFINITION, PATH, example, run_kopf, script

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
OPERATOR = """
    import os

    @kopf.on.create("kopfexamples")
    def create_fn(name, **_):
        print(f"<{name} by {os.getpid()}>", flush=True)
        print(f"[{name} in term {kopf.term()}]", flush=True)
    """


def calls(world: World) -> list[tuple[str, int]]:
    """All calls of the handler, with the process that made them."""
    return [(name, int(pid)) for name, pid in re.findall(r"<(\S+) by (\d+)>", world.text())]


def caller(world: World, name: str) -> int:
    """Wait until an object is handled, and return the process that did it."""
    world.until(lambda: any(called == name for called, _ in calls(world)))
    return next(pid for called, pid in calls(world) if called == name)


def test_one_replica_leads_and_the_other_takes_over(world: World, tmp_path: pathlib.Path) -> None:
    path = script(tmp_path, OPERATOR)
    world.cluster.request("POST", DEFINITIONS, DEFINITION)
    for _ in range(2):
        world.start("-n", "default", "--leader-elect", "greeter", path)
    world.until(lambda: world.get(f"{LEASES}/greeter"))
    world.cluster.request("POST", PATH, example("one"))
    leader = caller(world, "one")
    process = next(it for it in world.processes if it.pid == leader)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0, world.text()
    world.processes.remove(process)
    world.cluster.request("POST", PATH, example("two"))
    assert caller(world, "two") == world.processes[0].pid
    world.stop()
    assert [name for name, _ in calls(world)] == ["one", "two"], "nothing was handled twice"
    terms = dict(re.findall(r"\[(\S+) in term (\d+)\]", world.text()))
    assert int(terms["one"]) < int(terms["two"]), "every leader has a greater term"


def test_shards_handle_every_object_once(world: World, tmp_path: pathlib.Path) -> None:
    path = script(tmp_path, OPERATOR)
    world.cluster.request("POST", DEFINITIONS, DEFINITION)
    for _ in range(2):
        world.start("-n", "default", "--leader-elect", "greeter", "--shards", "auto", path)
    world.until(lambda: owners(world) == 2)
    names = [f"object-{number}" for number in range(40)]
    for name in names:
        world.cluster.request("POST", PATH, example(name))
    world.until(lambda: len(calls(world)) >= len(names))
    world.stop()
    assert sorted(name for name, _ in calls(world)) == sorted(names), "each exactly once"
    assert len({pid for _, pid in calls(world)}) == 2, "both replicas have a share"


def owners(world: World) -> int:
    """Count the replicas that own ranges."""
    table = world.get(f"{LEASES}/greeter-shards")
    annotations = (table or {}).get("metadata", {}).get("annotations", {})
    text = str(annotations.get("kopf.dev/shards", ""))
    members = [lease["metadata"]["name"] for lease in world.get(LEASES)["items"]]
    identities = [name.removeprefix("greeter-") for name in members if name != "greeter-shards"]
    return sum(identity in text for identity in identities)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shards", "auto"], "--shards needs --leader-elect NAME"),
        (["--leader-elect", "x", "--shards", "many"], "'many' is neither 'auto' nor a number"),
        (["--leader-elect", "x", "--shards", "0"], "'0' is neither 'auto' nor a number"),
    ],
)
def test_wrong_options_are_usage_errors(
    options: list[str], message: str, tmp_path: pathlib.Path
) -> None:
    done = run_kopf("run", "-A", *options, script(tmp_path, ""))
    assert done.returncode == 2 and message in done.stderr
