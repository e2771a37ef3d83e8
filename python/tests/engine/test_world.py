"""Worlds of tests: virtual time, faults and the log of requests."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
from typing import Annotated, Any

import pytest

import kopf
from kopf.testing import RequestError, World, fault

pytestmark = pytest.mark.asyncio

EXAMPLES = "kopfexamples.v1.kopf.dev"
WHERE = ("kopf.dev", "v1", "kopfexamples")


async def test_an_object_is_handled(kopf_world: World) -> None:
    @kopf.on.create(*WHERE, id="create")
    async def create(spec: Any, **_: Any) -> Any:
        return spec["size"]

    async with kopf_world.operator():
        examples = kopf_world.objects(EXAMPLES)
        examples.create("one", spec={"size": 3})
        await kopf_world.settled()
        assert examples.get("one")["status"] == {"create": 3}
        patches = kopf_world.requests().patches().on("kopfexamples.kopf.dev").named("one")
        patches.through("").assert_count(1)
        [patch] = patches.through("status")
        assert patch.json["status"] == {"create": 3}


async def test_time_passes_only_when_it_is_let(kopf_world: World) -> None:
    calls: list[int] = []

    @kopf.on.create(*WHERE, id="create", backoff=3600)
    def create(retry: int, runtime: datetime.timedelta, **_: Any) -> Any:
        calls.append(retry)
        if retry < 2:
            raise RuntimeError("not yet")
        return runtime.total_seconds()

    async with kopf_world.operator():
        examples = kopf_world.objects(EXAMPLES)
        examples.create("one")
        await kopf_world.settled()
        assert calls == [0]
        before = kopf_world.now
        await kopf_world.advance(3599)
        assert calls == [0]
        await kopf_world.advance(datetime.timedelta(seconds=2))
        assert calls == [0, 1]
        assert kopf_world.now - before >= datetime.timedelta(seconds=3601)
        await kopf_world.until(lambda: len(calls) == 3, patience=4000)
        await kopf_world.settled()
        assert 7200 <= examples.get("one")["status"]["create"] < 7300


async def test_time_stands_still_while_handlers_run(kopf_world: World) -> None:
    @kopf.on.create(*WHERE, id="create", timeout=1)
    async def create(retry: int, **_: Any) -> Any:
        for _step in range(20):
            await asyncio.sleep(0.01)
        return retry

    async with kopf_world.operator():
        kopf_world.objects(EXAMPLES).create("one")
        await kopf_world.advance(3600)
        assert kopf_world.objects(EXAMPLES).get("one")["status"] == {"create": 0}


async def test_a_day_of_timers_takes_no_time(kopf_world: World) -> None:
    counts: list[None] = []

    @kopf.timer(*WHERE, interval=600)
    def tick(**_: Any) -> None:
        counts.append(None)

    async with kopf_world.operator():
        kopf_world.objects(EXAMPLES).create("one")
        await kopf_world.advance(24 * 3600)
    assert 140 <= len(counts) <= 146


async def test_conditions_are_waited_for_with_filters_in_python(kopf_world: World) -> None:
    @kopf.on.create(*WHERE, id="create", when=lambda name, **_: name != "two")
    def create(name: str, **_: Any) -> str:
        return name

    async with kopf_world.operator():
        examples = kopf_world.objects(EXAMPLES)
        for name in ("one", "two", "three"):
            examples.create(name)
        found = await examples.until("three", lambda it: it.get("status"))
        assert found["status"] == {"create": "three"}
        assert "status" not in examples.get("two")
        with pytest.raises(AssertionError, match="timed out after 5 seconds"):
            await kopf_world.until(lambda: examples.get("two").get("status"), patience=5)
        with pytest.raises(RequestError) as e:
            examples.get("four")
        assert e.value.code == 404


async def test_faults_hit_the_operator_and_never_the_test(kopf_world: World) -> None:
    @kopf.on.create(*WHERE, id="create")
    def create(**_: Any) -> bool:
        return True

    async with kopf_world.operator():
        kopf_world.fault(fault.on("kopfexamples").patches().status(503).times(3))
        kopf_world.fault(fault.on("kopfexamples").watches().cut_after(1))
        examples = kopf_world.objects(EXAMPLES)
        examples.create("one")
        examples.patch("one", {"metadata": {"labels": {"a": "b"}}})
        await examples.until("one", lambda it: it.get("status") == {"create": True})
        kopf_world.requests().patches().answered(503).assert_count(3)
        kopf_world.heal()
        kopf_world.forget_requests()
        assert not kopf_world.requests()
        examples.create("two")
        await examples.until("two", lambda it: it.get("status") == {"create": True})
        kopf_world.requests().answered(503).assert_none()
        with pytest.raises(AssertionError, match="expected 7 requests, not"):
            kopf_world.requests().patches().assert_count(7)


async def test_unknown_faults_are_refused(kopf_world: World) -> None:
    with pytest.raises(ValueError, match="unknown verb: fetch"):
        kopf_world.fault(fault.on("pods").verb("fetch").status(500))


async def test_daemons_run_in_worlds_and_end_with_their_objects(kopf_world: World) -> None:
    log: list[str] = []

    @kopf.daemon(*WHERE)
    async def run(stopped: Any, **_: Any) -> None:
        log.append("begun")
        await stopped.wait()
        log.append("ended")

    async with kopf_world.operator():
        examples = kopf_world.objects(EXAMPLES)
        examples.create("one")
        await kopf_world.until(lambda: log == ["begun"])
        examples.delete("one")
        await examples.until_gone("one")
        assert log == ["begun", "ended"]


async def test_worlds_are_apart(kopf_world: World) -> None:
    @kopf.on.create(*WHERE)
    def create(**_: Any) -> None: ...

    with World() as other:
        async with kopf_world.operator(), other.operator():
            kopf_world.objects(EXAMPLES).create("one")
            await kopf_world.settled()
            assert other.objects(EXAMPLES).list() == []
            assert [it["metadata"]["name"] for it in kopf_world.objects(EXAMPLES).list()] == ["one"]


async def test_operators_that_fail_to_start_fail_the_test(kopf_world: World) -> None:
    @kopf.on.startup()
    def start(**_: Any) -> None:
        raise kopf.PermanentError("no way")

    with pytest.raises(Exception, match="no way"):
        async with kopf_world.operator():
            raise AssertionError("it must not begin")


async def test_events_are_posted(kopf_world: World) -> None:
    @kopf.on.create(*WHERE)
    def create(body: Any, **_: Any) -> None:
        kopf.info(body, reason="Made", message="it is there")

    async with kopf_world.operator():
        kopf_world.objects(EXAMPLES).create("one")
        found = await kopf_world.until(kopf_world.events)
        assert found[0]["reason"] == "Made" and found[0]["message"] == "it is there"


async def test_requests_of_an_ended_world_are_refused() -> None:
    world = World()
    world.stop()
    world.stop()
    with pytest.raises(RuntimeError, match="the world has ended"):
        world.request("GET", "/api/v1/pods")


@dataclasses.dataclass
class DiskSpec:
    size: int


@dataclasses.dataclass
class DiskStatus:
    blocks: int = 0


@kopf.resource("example.com", "v1")
class Disk:
    spec: DiskSpec
    status: DiskStatus


async def test_typed_resources_are_defined_and_checked_by_the_server(kopf_world: World) -> None:
    @kopf.on.create(Disk, id="create")
    async def create(spec: DiskSpec, status: DiskStatus, **_: Any) -> DiskSpec:
        status.blocks = spec.size * 8
        return spec

    async with kopf_world.operator():
        disks = kopf_world.objects(Disk)
        with pytest.raises(RequestError, match="spec.size"):
            disks.create("bad", spec={"size": "large"})
        with pytest.raises(RequestError, match="spec.size: Required value"):
            disks.create("empty", spec={})
        disks.create("good", spec={"size": 2})
        found = await disks.until("good", lambda disk: disk.get("status"))
        assert found["status"] == {"blocks": 16, "create": {"size": 2}}


async def test_children_of_typed_resources_are_typed(kopf_world: World) -> None:
    @kopf.desired("example.com", "v1", "racks", children=[Disk])
    def disks(spec: Any, **_: Any) -> list[dict[str, Any]]:
        return [
            {
                "apiVersion": "example.com/v1",
                "kind": "Disk",
                "metadata": {"name": f"disk-{number}"},
                "spec": {"size": number},
            }
            for number in range(spec["disks"])
        ]

    @kopf.observe("example.com", "v1", "racks", children=[Disk])
    def count(owned: Any, patch: Any, **_: Any) -> None:
        patch.status["size"] = sum(disk.spec["size"] for disk in owned[Disk])

    async with kopf_world.operator():
        racks = kopf_world.objects("racks.v1.example.com")
        racks.create("one", spec={"disks": 3})
        await racks.until("one", lambda rack: rack.get("status", {}).get("size") == 3)
        assert sorted(kopf_world.objects(Disk).names()) == ["disk-0", "disk-1", "disk-2"]
        racks.patch("one", {"spec": {"disks": 1}})
        await racks.until("one", lambda rack: rack["status"]["size"] == 0)
        await kopf_world.objects(Disk).until_gone("disk-2")


async def test_daemons_see_the_children_of_later_moments(kopf_world: World) -> None:
    seen: list[list[str]] = []

    @kopf.desired(*WHERE, children=[("v1", "configmaps")])
    def maps(spec: Any, **_: Any) -> list[dict[str, Any]]:
        meta = {"name": spec["map"]}
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}]

    @kopf.daemon(*WHERE)
    @kopf.children(("v1", "configmaps"))
    async def look(owned: kopf.Owned, stopped: Any, **_: Any) -> None:
        while not stopped:
            names = [child.meta["name"] for child in owned.now()["v1", "configmaps"]]
            if names not in seen[-1:]:
                seen.append(names)
            await stopped.wait(0.01)

    async with kopf_world.operator():
        examples = kopf_world.objects(EXAMPLES)
        examples.create("one", spec={"map": "first"})
        await kopf_world.until(lambda: seen[-1:] == [["first"]])
        examples.patch("one", {"spec": {"map": "second"}})
        await kopf_world.until(lambda: seen[-1:] == [["second"]])


async def test_handlers_that_never_end_fail_the_test(
    kopf_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kopf._engine.world._ENDING", 0.2)
    begun = asyncio.Event()

    @kopf.on.create(*WHERE)
    async def create(**_: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    with pytest.raises(AssertionError, match="a handler did not end"):
        async with kopf_world.operator():
            kopf_world.objects(EXAMPLES).create("one")
            await begun.wait()


def make_pydantic() -> Any:
    pydantic = pytest.importorskip("pydantic")
    part = pydantic.create_model("Part", name=(str, ...))
    size = pydantic.Field(default=1, ge=1, le=9)
    fields = {"parts": (list[part], ...), "size": (int, size), "note": (str | None, None)}
    return pydantic.create_model("Spec", **fields)


def make_msgspec() -> Any:
    msgspec = pytest.importorskip("msgspec")
    part = msgspec.defstruct("Part", [("name", str)])
    size = Annotated[int, msgspec.Meta(ge=1, le=9)]
    fields = [("parts", list[part]), ("size", size, 1), ("note", str | None, None)]
    return msgspec.defstruct("Spec", fields)


@pytest.mark.parametrize("make", [make_pydantic, make_msgspec])
async def test_models_of_libraries_are_accepted_by_the_server(make: Any, kopf_world: World) -> None:
    spec_class = make()
    gadget = type("Gadget", (), {"__annotations__": {"spec": spec_class}})
    kopf.resource("example.com", "v1")(gadget)

    @kopf.on.create(gadget, id="create")
    def create(spec: Any, **_: Any) -> Any:
        assert isinstance(spec, spec_class)
        return [part.name for part in spec.parts] * spec.size

    create.__annotations__["spec"] = spec_class
    async with kopf_world.operator():
        gadgets = kopf_world.objects(gadget)
        with pytest.raises(RequestError, match="spec.size"):
            gadgets.create("bad", spec={"parts": [], "size": 10})
        gadgets.create("good", spec={"parts": [{"name": "a"}], "size": 2, "note": None})
        found = await gadgets.until("good", lambda it: it.get("status"))
        assert found["status"] == {"create": ["a", "a"]}
        gadgets.create("plain", spec={"parts": []})
        assert gadgets.get("plain")["spec"] == {"parts": [], "size": 1}
