"""Many objects with random changes, deletions and cancellations: no deadlock, no leak.

    python compat/stress.py [--objects 10000] [--minutes 10] [--report FILE]

An operator with sync and async handlers, daemons, timers and indexes runs in a process of its own,
on an embedded cluster of this process. Objects are created at first; then they are changed, deleted
and created again at random, so that daemons are cancelled in the middle of their work, and handlers
see their objects go. Checked: there is always progress; in the end everything is handled; the
operator stops by itself; its memory in the last third is not above the second third by more than
a tenth.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import pathlib
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from kopf._engine.cluster import EmbeddedCluster, RequestError

PATH = "/apis/kopf.dev/v1/namespaces/default/kopfexamples"
STALLED = 120.0
GROWTH = 1.1
ROUND = 200
SCRIPT = """
import asyncio
import os
import random
import threading
import time

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
counts = {}
lock = threading.Lock()


def count(name):
    with lock:
        counts[name] = counts.get(name, 0) + 1
        if sum(counts.values()) % 100 == 0:
            with open(os.environ["STRESS_COUNTS"] + ".new", "w") as f:
                f.write(str(counts).replace("'", '"'))
            os.replace(os.environ["STRESS_COUNTS"] + ".new", os.environ["STRESS_COUNTS"])


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = False
    settings.execution.max_workers = 20
    settings.execution.default_backoff = 0.2
    settings.background.cancellation_polling = 1


@kopf.on.login()
def login(**kwargs):
    return kopf.login_with_kubeconfig(**kwargs)


@kopf.index(*EX)
def by_kind(spec, name, **_):
    return {(spec.get("kind"), len(name)): name}


@kopf.on.create(*EX)
def sync_create(spec, retry, patch, **_):
    count("sync_create")
    time.sleep(random.random() * 0.002)
    if random.random() < 0.05 and retry < 3:
        raise kopf.TemporaryError("again", delay=0.1)
    patch.status["created"] = spec.get("value")


@kopf.on.create(*EX)
@kopf.on.update(*EX)
async def async_change(spec, by_kind, patch, retry, **_):
    count("async_change")
    await asyncio.sleep(random.random() * 0.01)
    if random.random() < 0.05 and retry < 3:
        raise ValueError("arbitrary")
    patch.status["seen"] = spec.get("value")
    len(by_kind)


@kopf.on.delete(*EX, labels={"guarded": "yes"})
async def guarded_delete(**_):
    count("delete")


@kopf.daemon(*EX, labels={"daemon": "async"}, cancellation_timeout=2)
async def async_daemon(stopped, **_):
    count("async_daemon")
    try:
        while not stopped:
            await asyncio.sleep(random.random() * 5)
    finally:
        count("async_daemon_ended")


@kopf.daemon(*EX, labels={"daemon": "sync", "few": "yes"})
def sync_daemon(stopped, **_):
    count("sync_daemon")
    stopped.wait(5)
    count("sync_daemon_ended")


@kopf.timer(*EX, labels={"daemon": "timer"}, interval=10, initial_delay=1)
async def timer(**_):
    count("timer")
"""


def definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": schema}
    names = {"plural": "kopfexamples", "singular": "kopfexample", "kind": "KopfExample"}
    spec = {"group": "kopf.dev", "scope": "Namespaced", "names": names, "versions": [version]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "kopfexamples.kopf.dev"},
        "spec": spec,
    }


class Stress:
    """The cluster, the operator, and who disturbs it."""

    def __init__(self, objects: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.objects = objects
        self.values: dict[str, int] = {}
        self.requests = 0
        self.samples: list[tuple[float, int]] = []
        self.counts: dict[str, int] = {}

    def body(self, name: str) -> dict[str, Any]:
        # A tenth has daemons that are cancelled, a hundredth occupies threads.
        number = int(name[1:])
        labels = {"guarded": "yes"} if number % 3 == 0 else {}
        if number % 10 == 0:
            labels["daemon"] = ("async", "timer", "async", "sync")[number // 10 % 4]
        if number % 2000 == 30:
            labels["few"] = "yes"
        self.values[name] = value = self.random.randrange(1_000_000)
        return {
            "apiVersion": "kopf.dev/v1",
            "kind": "KopfExample",
            "metadata": {"name": name, "labels": labels},
            "spec": {"value": value, "kind": number % 7, "filler": "x" * 200},
        }

    def create(self, name: str) -> None:
        self.requests += 1
        try:
            self.cluster.request("POST", PATH, self.body(name))
        except RequestError as e:
            if e.code != 409:  # it is still being deleted
                raise
            self.values.pop(name, None)

    def disturb(self, name: str) -> None:
        """Change or delete an object, or create it again."""
        self.requests += 1
        try:
            if name not in self.values:
                self.create(name)
            elif self.random.random() < 0.25:
                self.values.pop(name)
                self.cluster.request("DELETE", f"{PATH}/{name}")
            else:
                self.values[name] = value = self.random.randrange(1_000_000)
                patch = {"spec": {"value": value}}
                merge = "application/merge-patch+json"
                self.cluster.request("PATCH", f"{PATH}/{name}", patch, content_type=merge)
        except RequestError as e:
            if e.code != 404:
                raise
            self.values.pop(name, None)

    def sample(self, started: float) -> None:
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        kilobytes = int(status.partition("VmRSS:")[2].split()[0])
        self.samples.append((time.monotonic() - started, kilobytes // 1024))
        if self.counted.exists():
            self.counts = json.loads(self.counted.read_text())

    def handled(self) -> bool:
        """Whether every object shows the value that it has."""
        items = self.cluster.request("GET", PATH)["items"]
        present = {item["metadata"]["name"]: item for item in items}
        return all(
            name in present and present[name].get("status", {}).get("seen") == value
            for name, value in self.values.items()
        )

    def run(self, minutes: float) -> None:
        with tempfile.TemporaryDirectory() as folder, EmbeddedCluster() as self.cluster:
            directory = pathlib.Path(folder)
            self.cluster.install(None, [definition()])
            (directory / "kubeconfig.yaml").write_text(self.cluster.kubeconfig_yaml)
            (directory / "operator.py").write_text(SCRIPT)
            self.counted = directory / "counts.json"
            environment = {
                **os.environ,
                "KUBECONFIG": str(directory / "kubeconfig.yaml"),
                "STRESS_COUNTS": str(self.counted),
                "PYTHONPATH": str(HERE.parent),
            }
            command = [sys.executable, "-m", "kopf", "run", "-A", "--standalone", "--quiet"]
            self.log = directory / "log"
            with open(self.log, "wb") as log:
                self.process = subprocess.Popen(
                    [*command, str(directory / "operator.py")],
                    env=environment,
                    stdout=log,
                    stderr=log,
                )
            try:
                self._run(minutes)
            finally:
                if self.process.poll() is None:
                    self.process.kill()
                    self.process.wait()

    def _run(self, minutes: float) -> None:
        names = [f"o{number}" for number in range(self.objects)]
        for name in names:
            self.create(name)
        started = moved = time.monotonic()
        before = 0
        while time.monotonic() - started < minutes * 60:
            for _ in range(ROUND):
                self.disturb(self.random.choice(names))
            self.sample(started)
            now = sum(self.counts.values())
            if now != before:
                before, moved = now, time.monotonic()
            if time.monotonic() - moved > STALLED:
                raise SystemExit(f"no progress for {STALLED} seconds: {self.dump()}")
            # No faster than the operator: else the queue grows, and with it the memory.
            time.sleep(0.2)
        deadline = time.monotonic() + STALLED * 3
        while not self.handled():
            if time.monotonic() > deadline:
                raise SystemExit(f"not everything is handled: {self.dump()}")
            time.sleep(1)
        self.sample(started)
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STALLED)
        except subprocess.TimeoutExpired:
            raise SystemExit(f"the operator does not stop: {self.dump()}") from None
        if code != 0 or "panicked" in self.log.read_text():
            raise SystemExit(f"the operator has failed with {code}: {self.dump()}")

    def dump(self) -> str:
        return self.log.read_text()[-3000:]

    def growth(self) -> tuple[int, int]:
        """The medians of the memory in the second and in the last third of the time."""
        values = [megabytes for _, megabytes in self.samples]
        third = max(1, len(values) // 3)
        second, last = sorted(values[third : 2 * third]), sorted(values[-third:])
        return second[len(second) // 2], last[len(last) // 2]


def report(stress: Stress, minutes: float) -> str:
    second, last = stress.growth()
    step = max(1, len(stress.samples) // 20)
    rows = [f"| {int(at)} | {megabytes} |" for at, megabytes in stress.samples[::step]]
    calls = ", ".join(f"{name} {number}" for name, number in sorted(stress.counts.items()))
    return "\n".join(
        [
            "# Stress of the Python package",
            "",
            f"Measured on {datetime.date.today()} by `python python/compat/stress.py`: "
            f"{stress.objects} objects, {minutes:g} minutes, Python {platform.python_version()}, "
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}.",
            "",
            "An operator with sync and async handlers, daemons, timers and an index; objects are",
            "changed, deleted and created again at random, so that daemons are cancelled at any",
            "moment. No deadlock, every object handled in the end, a clean exit.",
            "",
            f"- Requests of the disturber: {stress.requests}",
            f"- Calls of handlers: {sum(stress.counts.values())} ({calls})",
            f"- Memory of the operator (median): {second} MB in the second third of the time, "
            f"{last} MB in the last third",
            "",
            "| second | RSS, MB |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=pathlib.Path)
    options = parser.parse_args()
    stress = Stress(options.objects, options.seed)
    stress.run(options.minutes)
    text = report(stress, options.minutes)
    print(text)
    second, last = stress.growth()
    if last > second * GROWTH:
        print(f"the memory grows: {second} MB, then {last} MB")
        return 1
    if options.report:
        options.report.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
