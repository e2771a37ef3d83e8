"""Kopf from PyPI and our engine: the same objects and handlers, the same notes, results and events.

The operators are `cross_check_*.py` and `crates/kopf/examples/cross_check`, handler by handler.
Compared are annotations, finalizers, status, events and the order of calls. Then objects that one of the
two has left half-handled are finished by the other one, without running again what has succeeded.
"""

import re
import signal
import time

import kubernetes
import pytest

from conftest import eventually
from cross_check_world import (
    HALVES, LONG, SIDES, both, comparable, finish_by, on_both, order, reach_half, records, shapes,
)


@pytest.mark.parametrize("storage", ["default", "status", "prefix", "multi"])
def test_a_life_leaves_the_same_traces(worlds, storage):
    pair = both(worlds, storage=storage)
    states = {side: [] for side in SIDES}
    for world, side in zip(pair, SIDES):
        world.create(labels={"some": "label"}, annotations={"some": "annotation"})
    for world, side in zip(pair, SIDES):
        states[side].append(comparable(world.until_handled()))
        world.patch({"spec": {"field": "new", "items": [3]}, "metadata": {"labels": {"other": "x"}}})
    for world, side in zip(pair, SIDES):
        spec = {"field": "new", "ünïcode": "ß", "items": [3]}
        states[side].append(comparable(world.until_handled(spec)))
        # Its own notes and foreign fields are no change, the same edit twice is none either.
        world.patch({"spec": {"field": "new"}, "status": {"foreign": True}})
        world.stop()
        world.start(side)
    for world, side in zip(pair, SIDES):
        eventually(lambda: ("resumed", 0, "resume") in world.calls())
        world.delete()
    for world, side in zip(pair, SIDES):
        eventually(lambda: world.get() is None)
        eventually(world.events)
    theirs, ours = states["kopf"], states["ours"]
    assert ours == theirs
    assert order(pair[1].calls()) == order(pair[0].calls())
    assert pair[1].events() == pair[0].events()
    assert {handler for handler, *_ in pair[1].calls()} >= {"first", LONG, "parent/c/x", "delete_second"}


def test_daemons_and_timers_leave_the_same_traces(worlds):
    pair = both(worlds)
    states = []
    for world in pair:
        world.create(labels={"background": "yes"})
    for world in pair:
        world.until_handled()
        has_both = lambda: {"daemon_fn", "timer_fn"} <= set(world.get().get("status", {}))
        eventually(has_both)
        states.append(comparable(world.get()))
        world.delete()
    for world in pair:
        eventually(lambda: world.get() is None)
    assert states[1] == states[0]


def finish_half(world, half):
    if half == "deletion":
        return eventually(lambda: world.get() is None)
    return comparable(world.until_handled())


@pytest.mark.parametrize("half", HALVES)
def test_half_handled_objects_are_stored_alike(worlds, half):
    found = []
    for world in both(worlds):
        reach_half(world, half)
        world.stop()
        found.append(shapes(world.get()))
    assert found[1] == found[0]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("giver,taker", [("kopf", "ours"), ("ours", "kopf")])
def test_half_handled_objects_are_finished_by_the_other(worlds, giver, taker, half, how):
    world = worlds().start(giver)
    reach_half(world, half)
    world.stop(how)
    held, done = HALVES[half]
    left = records(world.get())
    retries = {it["retries"] for it in left.values() if it.get("message") == "held back"}
    world.forget_calls()
    world.let_go()
    world.start(taker)
    end = finish_half(world, half)
    world.stop()
    calls = world.calls()
    again = {handler for handler, *_ in calls} & done
    assert not again, f"what had succeeded was run again: {calls}"
    # The count of attempts goes on where it was left.
    first = next(retry for handler, retry, _ in calls if handler == held)
    assert first in retries, calls
    # What comes of it is the same as if the giver itself had finished.
    if half != "deletion":
        assert end == alone(worlds, giver, half)


ALONE = {}


def alone(worlds, side, half):
    """How it ends when one side does it all; found out once."""
    if (side, half) not in ALONE:
        world = worlds().start(side)
        reach_half(world, half)
        world.let_go()
        ALONE[side, half] = finish_half(world, half)
    return ALONE[side, half]


@pytest.mark.parametrize("giver,taker", [("kopf", "ours"), ("ours", "kopf")])
def test_handled_objects_are_only_resumed_by_the_other(worlds, giver, taker):
    world = worlds().start(giver)
    world.create()
    before = world.until_handled()
    world.stop()
    world.forget_calls()
    world.start(taker)
    eventually(world.calls)
    world.patch({"spec": {"field": "new"}})
    world.until_handled({**before["spec"], "field": "new"})
    world.stop()
    # Both may take the change for a part of the resuming, if it comes before that is over.
    called = [handler for handler, *_ in world.calls()]
    assert set(called) == {"resumed", "field_fn", "changed", "changed_too"}
    assert not re.search("first|second|parent", " ".join(called))


def once(calls):
    """The calls without the repetitions of those that were held back, whose number depends on time."""
    seen = []
    for handler, _, reason in calls:
        if (handler, reason) not in seen:
            seen.append((handler, reason))
    return seen


def test_changes_while_nobody_looks_are_handled_alike(worlds):
    found = []
    for world, side in zip(both(worlds), SIDES):
        world.create()
        before = world.until_handled()
        world.stop()
        world.forget_calls()
        world.patch({"spec": {"field": "new"}, "metadata": {"annotations": {"some": "note"}}})
        world.start(side)
        end = comparable(world.until_handled({**before["spec"], "field": "new"}))
        world.stop()
        found.append((world.calls(), end))
    assert found[1] == found[0]


def test_a_deletion_supersedes_an_update_alike(worlds):
    found = []
    for world in both(worlds):
        reach_half(world, "update")
        world.delete()
        eventually(lambda: world.get() is None)
        world.stop()
        found.append(once(world.calls()))
    assert found[1] == found[0]
    assert ("delete_second", "delete") in found[1]


def change_midway(world):
    """Makes a change after some handlers of an update have finished; the calls and the end of it."""
    before = reach_half(world, "update")
    world.patch({"spec": {"field": "newer", "more": True}})
    time.sleep(0.5)
    world.let_go()
    end = comparable(world.until_handled({**before["spec"], "field": "newer", "more": True}))
    world.stop()
    return once(world.calls()), end


def test_another_change_in_the_middle_of_an_update_is_handled_alike_if_asked_for(worlds):
    kopf, ours = (change_midway(world) for world in both(worlds, rerun_outdated=False))
    assert ours == kopf


def test_another_change_in_the_middle_of_an_update_reaches_those_that_have_finished(worlds):
    (kopf_calls, kopf), (calls, ours) = (change_midway(world) for world in both(worlds))
    assert calls == kopf_calls
    # Kopf does not tell the field handler that has handled the first change.
    assert kopf["status"]["field_fn/spec.field"] == {"old": "value", "new": "new"}
    assert ours["status"]["field_fn/spec.field"] == {"old": "new", "new": "newer"}
    assert ours["annotations"] == kopf["annotations"]


@pytest.mark.parametrize("storage", ["status", "prefix", "multi"])
@pytest.mark.parametrize("giver,taker", [("kopf", "ours"), ("ours", "kopf")])
def test_half_handled_objects_are_handed_over_in_any_storage(worlds, giver, taker, storage):
    world = worlds(storage=storage).start(giver)
    reach_half(world, "sub-handlers")
    world.stop(signal.SIGKILL)
    finish_by(world, taker, "sub-handlers")


def test_an_object_without_its_last_handled_state_is_created_anew_alike(worlds):
    def scenario(world):
        world.create()
        world.until_handled()
        world.forget_calls()
        note = "kopf.zalando.org/last-handled-configuration"
        world.patch({"metadata": {"annotations": {note: None}}})
        eventually(lambda: ("first", 0, "create") in world.calls())
        return comparable(world.until_handled()), sorted(once(world.calls()))

    theirs, ours = on_both(worlds, scenario)
    assert ours == theirs


VARIANTS = {
    "plain": {"spec": {"n": 1}},
    "large": {"spec": {"n": 5}, "labels": {"tier": "live"}, "annotations": {"note": ""}},
    "bare": {"labels": {"tier": "test"}},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_filters_error_modes_and_indexes_leave_the_same_traces(worlds, variant):
    def scenario(world):
        states = []
        world.create(**VARIANTS[variant])
        states.append(world.until_handled())
        for change in (
            {"spec": {"n": 2}},
            {"spec": {"n": None}},
            {"metadata": {"labels": {"tier": "other"}}},
            {"metadata": {"annotations": {"note": "changed"}}},
        ):
            world.patch(change)
            states.append(world.until_noted())
        return [comparable(state) for state in states], sorted(once(world.calls()))

    theirs, ours = on_both(worlds, scenario, handlers="more")
    assert ours == theirs


def test_a_restart_in_the_middle_of_a_deletion_is_resumed_alike(worlds):
    found = []
    for side in SIDES:
        world = worlds(handlers="more").start(side)
        world.create()
        world.until_handled()
        world.hold("deleting")
        world.delete()
        eventually(lambda: ("deleting", 0, "delete") in world.calls())
        world.stop()
        world.forget_calls()
        world.start(side)
        eventually(lambda: {"still_there", "deleting"} <= {name for name, *_ in world.calls()})
        world.let_go()
        eventually(lambda: world.get() is None)
        world.stop()
        found.append(sorted(once(world.calls())))
    assert found[1] == found[0]
    assert ("cleaned", "cleanup") in found[1]


def test_objects_of_built_in_kinds_get_the_same_notes(worlds):
    core = kubernetes.client.CoreV1Api()

    def scenario(world):
        for name, labels in (("mine", {"mine": "yes"}), ("other", {})):
            meta = kubernetes.client.V1ObjectMeta(name=name, labels=labels)
            body = kubernetes.client.V1ConfigMap(metadata=meta, data={"k": "v", "u": "ß"})
            core.create_namespaced_config_map(world.namespace, body)
        eventually(lambda: ("mapped", 0, "create") in world.calls())
        time.sleep(0.5)
        return [
            core.read_namespaced_config_map(name, world.namespace).metadata.annotations
            for name in ("mine", "other")
        ]

    theirs, ours = on_both(worlds, scenario, handlers="more")
    assert ours == theirs
    assert ours[0] and not ours[1]


OPTIONAL = {
    "alone": {},
    "beside a foreign finalizer": {"finalizers": ["example.com/foreign"]},
    "beside a daemon": {"labels": {"background": "yes"}},
}


@pytest.mark.parametrize("case", OPTIONAL)
def test_optional_deletion_handlers_are_called_alike(worlds, case):
    def scenario(world):
        world.create(**OPTIONAL[case])
        before = comparable(world.until_handled())
        world.delete()
        if case == "beside a foreign finalizer":
            time.sleep(1)
            assert world.get(), "the foreign finalizer holds it"
            world.patch({"metadata": {"finalizers": None}})
        eventually(lambda: world.get() is None)
        time.sleep(0.3)
        return before, world.calls()

    theirs, ours = on_both(worlds, scenario, handlers="optional")
    assert ours == theirs
    assert (("gone", 0, "delete") in ours[1]) == (case == "beside a daemon")


def test_what_handlers_change_is_written_and_handled_alike(worlds):
    def scenario(world):
        world.create()
        eventually(lambda: ("rehandled", 0, "update") in world.calls())
        return comparable(world.until_handled()), world.calls()

    theirs, ours = on_both(worlds, scenario, handlers="patching")
    assert ours == theirs
    assert ours[0]["spec"]["items"] == [1, 2, "x"]


def test_log_lines_become_the_same_events(worlds):
    def scenario(world):
        world.create()
        world.until_handled()
        world.patch({"spec": {"field": "new"}})
        world.until_handled({"field": "new", "ünïcode": "ß", "items": [1, 2]})
        world.delete()
        eventually(lambda: world.get() is None)
        wanted = "Handler 'delete_second' succeeded."
        eventually(lambda: any(wanted in event[2] for event in world.events()))
        time.sleep(1)
        # Kopf's lines are followed by Python's tracebacks.
        return sorted({(kind, reason, text.splitlines()[0], *who) for kind, reason, text, *who in world.events()})

    theirs, ours = on_both(worlds, scenario, loggers=True)
    assert ours == theirs
