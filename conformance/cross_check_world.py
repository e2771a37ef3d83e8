"""Where Kopf and our engine are compared: a namespace, an object, and the operators that look after it."""

import json
import os
import signal
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
        pytest.skip("set CROSS_CHECK to the built example `cross_check`, or use `cargo xtask conformance`")
    return binary


@pytest.fixture(scope="session")
def api(kubeconfig):
    kubernetes.config.load_kube_config(kubeconfig)
    return kubernetes.client.CustomObjectsApi()


class World:
    """One namespace with one object, and the operators that look after it one after another."""

    def __init__(
        self, api, ours, folder,
        storage="default", handlers="operator", loggers=False, rerun_outdated=True,
    ):
        self.api, self.ours, self.storage = api, ours, storage
        self.handlers, self.loggers, self.rerun_outdated = handlers, loggers, rerun_outdated
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
        if not self.rerun_outdated:
            environment["KEEP_OUTDATED"] = "yes"
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
        # `handled` is a field of ours that Kopf does not have.
        left_out = (*TIMES, "retries", "handled")
        kept = {name: value for name, value in record.items() if name not in left_out}
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
            # In the status, our engine keeps the handled state beside the record of a handler.
            and not key.endswith("/handled-state")
        }
        held_back = [it for it in waiting.values() if it.get("message") == "held back"]
        only_held = len(waiting) <= (2 if half == "sub-handlers" else 1)
        return world.get() if done <= called and held_back and only_held else None

    return eventually(check)


def finish_by(world, side, half):
    """Lets the other side finish what was left in the middle; what had succeeded must not run again."""
    world.forget_calls()
    world.let_go()
    world.start(side)
    world.until_handled()
    world.stop()
    again = {handler for handler, *_ in world.calls()} & HALVES[half][1]
    assert not again, f"what had succeeded was run again: {world.calls()}"
