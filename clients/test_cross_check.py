"""Kopf from PyPI and our engine: the same objects and handlers, the same notes, results and events.

The operators are `cross_check_*.py` and `crates/kopf/examples/cross_check`, handler by handler.
Compared are annotations, finalizers, status, events and the order of calls. Then objects that one of the
two has left half-handled are finished by the other one, without running again what has succeeded.
"""

import json
import os
import random
import re
import signal
import string
import subprocess
import sys
import time
import uuid

import kopf
import kubernetes
import pytest
from kubernetes.client.exceptions import ApiException

from compact_storage import CompactDiffBaseStorage
from conftest import HERE, eventually

KIND = ("kopf.dev", "v1")
LONG = "a_handler_with_a_name_that_is_longer_than_the_key_of_an_annotation_may_be"
SIDES = ("kopf", "ours")
TIMES = ("started", "stopped", "delayed")


@pytest.fixture(scope="session")
def ours():
    binary = os.environ.get("CROSS_CHECK")
    if not binary:
        pytest.skip("set CROSS_CHECK to the built example `cross_check`, or use `cargo xtask clients`")
    return binary


@pytest.fixture(scope="session")
def api(kubeconfig):
    kubernetes.config.load_kube_config(kubeconfig)
    return kubernetes.client.CustomObjectsApi()


class World:
    """One namespace with one object, and the operators that look after it one after another."""

    def __init__(self, api, ours, folder, storage="default", handlers="operator", loggers=False):
        self.api, self.ours, self.storage = api, ours, storage
        self.handlers, self.loggers = handlers, loggers
        self.namespace = f"cross-{uuid.uuid4().hex[:8]}"
        self.folder = folder / self.namespace
        (self.folder / "hold").mkdir(parents=True)
        self.calls_file = self.folder / "calls"
        self.calls_file.touch()
        self.process = None
        meta = kubernetes.client.V1ObjectMeta(name=self.namespace)
        kubernetes.client.CoreV1Api().create_namespace(kubernetes.client.V1Namespace(metadata=meta))

    def start(self, side):
        command = {
            "kopf": [sys.executable, "-m", "kopf", "run", "--verbose", "--standalone"],
            "ours": [self.ours, "run", "--verbose", "--standalone"],
        }[side]
        script = [str(HERE / f"cross_check_{self.handlers}.py")] if side == "kopf" else []
        environment = {
            **os.environ,
            "CALLS": str(self.calls_file),
            "HOLD": str(self.folder / "hold"),
            "STORAGE": self.storage,
            "HANDLERS": self.handlers,
        }
        if self.loggers:
            environment["LOGGERS"] = "yes"
        log = (self.folder / f"{side}.log").open("a")
        self.process = subprocess.Popen(
            [*command, "-n", self.namespace, *script],
            env=environment, stdout=log, stderr=subprocess.STDOUT,
        )
        return self

    def stop(self, how=signal.SIGTERM):
        if self.process:
            self.process.send_signal(how)
            self.process.wait(timeout=20)
            self.process = None

    def close(self):
        self.stop()
        for log in sorted(self.folder.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text()}")
        finalizers = {"metadata": {"finalizers": None}}
        if self.get():
            self.patch(finalizers)
        kubernetes.client.CoreV1Api().delete_namespace(self.namespace)

    def hold(self, handler):
        (self.folder / "hold" / handler.replace("/", ".")).touch()

    def let_go(self):
        for file in (self.folder / "hold").iterdir():
            file.unlink()

    def create(self, spec=None, **metadata):
        body = {
            "apiVersion": "kopf.dev/v1",
            "kind": "KopfExample",
            "metadata": {"name": "one", **metadata},
            "spec": {"field": "value", "ünïcode": "ß", "items": [1, 2], **(spec or {})},
        }
        self.api.create_namespaced_custom_object(*KIND, self.namespace, "kopfexamples", body)

    def patch(self, patch):
        self.api.patch_namespaced_custom_object(*KIND, self.namespace, "kopfexamples", "one", patch)

    def delete(self):
        self.api.delete_namespaced_custom_object(*KIND, self.namespace, "kopfexamples", "one")

    def get(self):
        try:
            return self.api.get_namespaced_custom_object(*KIND, self.namespace, "kopfexamples", "one")
        except ApiException as error:
            if error.status == 404:
                return None
            raise

    def calls(self):
        return [tuple(json.loads(line)) for line in self.calls_file.read_text().splitlines()]

    def forget_calls(self):
        self.calls_file.write_text("")

    def last_handled(self, obj):
        status = obj.get("status", {}).get("myop", {})
        annotations = obj["metadata"].get("annotations", {})
        keys = ("kopf.zalando.org/last-handled-configuration", "my-op.example.com/last")
        texts = [status.get("last-handled-configuration"), *map(annotations.get, keys)]
        return next((text for text in texts if text), None)

    def until_handled(self, spec=None):
        """Waits until the present spec is handled, with nothing left to do."""

        def check():
            obj = self.get()
            text = self.last_handled(obj)
            if text and is_compact(obj):
                text = json.dumps(CompactDiffBaseStorage().fetch(body=kopf.Body(obj)))
            is_handled = text and json.loads(text)["spec"] == obj["spec"] == (spec or obj["spec"])
            return obj if is_handled and not records(obj) else None

        # The status is written by a request of its own, after the notes.
        handled = eventually(check)
        while True:
            time.sleep(0.3)
            newer = self.get()
            if newer["metadata"]["resourceVersion"] == handled["metadata"]["resourceVersion"]:
                return newer
            handled = newer

    def until_noted(self):
        """Waits until the present state is the last handled one, with nothing left to do."""

        def check():
            obj = self.get()
            noted = json.loads(self.last_handled(obj))
            labels = obj["metadata"].get("labels")
            texts = {
                key: value for key, value in obj["metadata"].get("annotations", {}).items()
                if "zalando" not in key
            }
            metadata = noted.get("metadata", {})
            is_same = (noted["spec"], metadata.get("labels"), metadata.get("annotations") or {}) == (
                obj["spec"], labels, texts)
            return obj if is_same and not records(obj) else None

        eventually(check)
        time.sleep(0.5)
        return self.get()

    def events(self):
        found = kubernetes.client.CoreV1Api().list_namespaced_event(self.namespace).items
        return sorted(
            (it.type, it.reason, it.message, it.involved_object.kind, it.involved_object.name,
             it.reporting_component, it.source.component)
            for it in found
        )


@pytest.fixture
def worlds(api, ours, crd, tmp_path):
    made = []

    def make(**options):
        made.append(World(api, ours, tmp_path, **options))
        return made[-1]

    yield make
    for world in made:
        world.close()


def records(obj):
    """The progress of all handlers as stored, by the key of the note."""
    notes = obj["metadata"].get("annotations", {})
    found = {key: json.loads(text) for key, text in notes.items() if text.startswith('{"started"')}
    progress = obj.get("status", {}).get("myop", {}).get("progress") or {}
    return {**found, **{key: value for key, value in progress.items() if value}}


def is_compact(obj):
    """Whether the last handled state has a form that Kopf has not."""
    annotations = obj["metadata"].get("annotations", {})
    text = annotations.get("kopf.zalando.org/last-handled-configuration", "")
    return text.startswith('{"kopf.dev/compact":')


def comparable(obj):
    """The object without what differs from one object to another, byte by byte otherwise."""
    metadata = obj["metadata"]
    status = json.loads(json.dumps(obj.get("status", {})))
    return {
        "labels": metadata.get("labels"),
        "annotations": metadata.get("annotations"),
        "finalizers": metadata.get("finalizers"),
        "spec": obj["spec"],
        "status": status,
    }


def shapes(obj):
    """What is stored of the progress, without times and without counts that depend on them."""

    def shape(record):
        kept = {name: value for name, value in record.items() if name not in (*TIMES, "retries")}
        return {**kept, "times": [name for name in TIMES if record.get(name)][:1]}

    return {key: shape(record) for key, record in sorted(records(obj).items())}


def order(calls):
    """The calls by parent: what runs under different parents may be interleaved differently."""
    groups = {}
    for handler, *rest in calls:
        parent = handler.rpartition("/")[0]
        groups.setdefault(parent, []).append((handler, *rest))
    return groups


def both(worlds, **options):
    return [worlds(**options).start(side) for side in SIDES]


def on_both(worlds, scenario, **options):
    """What the scenario returns on either side: Kopf's, ours."""
    found = []
    for world in both(worlds, **options):
        found.append(scenario(world))
        world.stop()
    return found


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


# Which handler is held back, who must have succeeded before, and how to get there.
HALVES = {
    "creation": ("second", {"first", "ignored", "field_fn", LONG}),
    "sub-handlers": ("parent/b", {"first", "second", "parent/a", "parent/c/x"}),
    "update": ("changed_too", {"changed", "field_fn"}),
    "deletion": ("delete_second", {"delete_first"}),
}


def reach_half(world, half, spec=None):
    """Leads an object to the middle of something, and returns it when all of that is stored."""
    held, done = HALVES[half]
    if half in ("update", "deletion"):
        world.create(spec)
        world.until_handled()
        world.forget_calls()
    world.hold(held)
    match half:
        case "update":
            world.patch({"spec": {"field": "new"}})
        case "deletion":
            world.delete()
        case _:
            world.create()

    def check():
        called = {handler for handler, *_ in world.calls()}
        stored = records(world.get())
        # Several storages have a record each.
        waiting = {
            key.rpartition("my-op.example.com/")[2].replace("/", "."): it
            for key, it in stored.items()
            if not it.get("success") and not it.get("failure")
        }
        held_back = [it for it in waiting.values() if it.get("message") == "held back"]
        only_held = len(waiting) <= (2 if half == "sub-handlers" else 1)
        return world.get() if done <= called and held_back and only_held else None

    return eventually(check)


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


def test_another_change_in_the_middle_of_an_update_is_handled_alike(worlds):
    found = []
    for world in both(worlds):
        before = reach_half(world, "update")
        world.patch({"spec": {"field": "newer", "more": True}})
        time.sleep(0.5)
        world.let_go()
        end = comparable(world.until_handled({**before["spec"], "field": "newer", "more": True}))
        world.stop()
        found.append((once(world.calls()), end))
    assert found[1] == found[0]


@pytest.mark.parametrize("storage", ["status", "prefix", "multi"])
@pytest.mark.parametrize("giver,taker", [("kopf", "ours"), ("ours", "kopf")])
def test_half_handled_objects_are_handed_over_in_any_storage(worlds, giver, taker, storage):
    world = worlds(storage=storage).start(giver)
    reach_half(world, "sub-handlers")
    world.stop(signal.SIGKILL)
    world.forget_calls()
    world.let_go()
    world.start(taker)
    world.until_handled()
    world.stop()
    again = {handler for handler, *_ in world.calls()} & HALVES["sub-handlers"][1]
    assert not again, f"what had succeeded was run again: {world.calls()}"


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
    world.forget_calls()
    world.let_go()
    world.start(taker)
    world.until_handled()
    world.stop()
    again = {handler for handler, *_ in world.calls()} & HALVES["update"][1]
    assert not again, f"what had succeeded was run again: {world.calls()}"
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
