"""Last handled states in forms that Kopf has not: handed over with `compact_storage.py`, and without."""

import random
import signal
import string

import pytest

from conftest import eventually
from cross_check_world import finish_by, is_compact, reach_half


def incompressible(size):
    """The same text in every run."""
    return "".join(random.Random(size).choices(string.ascii_letters + string.digits, k=size))


# Objects whose copy does not fit into annotations, by the form of their last handled state.
LARGE = {
    "compressed": {"first": "x" * 200_000, "second": "y" * 200_000},
    "digests": {"first": incompressible(300_000), "second": incompressible(300_001)},
}
ONLY_UPDATED = {"resumed", "field_fn", "changed", "changed_too"}


@pytest.mark.parametrize("form", LARGE)
@pytest.mark.parametrize("giver,taker", [("kopf", "ours"), ("ours", "kopf")])
def test_states_too_large_for_kopf_are_handed_over(worlds, giver, taker, form):
    world = worlds(storage="compact").start(giver)
    world.create(LARGE[form])
    before = world.until_handled()
    assert is_compact(before)
    world.stop()
    world.forget_calls()
    world.start(taker)
    eventually(world.calls)
    # Small values are known, large ones or their digests are compared with what is there now.
    for change in ({"field": "new"}, {"first": "another one"}, {"second": LARGE[form]["first"]}):
        world.patch({"spec": change})
        spec = {**world.get()["spec"], **change}
        obj = world.until_handled(spec)
        assert obj["status"]["fields"] == [f"spec.{name}" for name in change]
    assert is_compact(obj) == (form == "digests")
    world.stop()
    assert {handler for handler, *_ in world.calls()} == ONLY_UPDATED


@pytest.mark.parametrize("form", LARGE)
@pytest.mark.parametrize("giver,taker", [("kopf", "ours"), ("ours", "kopf")])
def test_half_handled_objects_are_handed_over_with_states_too_large_for_kopf(worlds, giver, taker, form):
    world = worlds(storage="compact").start(giver)
    reach_half(world, "update", LARGE[form])
    world.stop(signal.SIGKILL)
    assert is_compact(world.get())
    finish_by(world, taker, "update")
    assert is_compact(world.get())


# Kopf can write its copy just so, with nothing left for others; we leave some room.
NEARLY_TOO_LARGE = {"first": "x" * 120_000, "second": "y" * 120_000}


def test_states_at_the_limit_become_compact_without_calls(worlds):
    world = worlds().start("kopf")
    world.create(NEARLY_TOO_LARGE)
    before = world.until_handled()
    assert not is_compact(before)
    world.stop()
    world.forget_calls()
    world.start("ours")
    eventually(world.calls)
    world.patch({"spec": {"field": "new"}})
    after = world.until_handled({**before["spec"], "field": "new"})
    world.stop()
    assert is_compact(after)
    assert after["status"]["fields"] == ["spec.field"]
    assert {handler for handler, *_ in world.calls()} == ONLY_UPDATED


def test_kopf_alone_takes_a_compact_state_for_a_change_of_everything(worlds):
    world = worlds().start("ours")
    world.create(NEARLY_TOO_LARGE)
    assert is_compact(world.until_handled())
    world.stop()
    world.forget_calls()
    world.start("kopf")
    eventually(lambda: not is_compact(world.get()))
    obj = world.until_handled()
    world.stop()
    # Not a creation, at least; but fields are told to have changed that have not.
    called = {handler for handler, *_ in world.calls()}
    assert called >= {"field_fn", "changed", "changed_too"} and "first" not in called
    assert obj["status"]["fields"] == ["kopf.dev/compact", "spec"]
