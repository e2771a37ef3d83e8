"""Runs a scenario: an operator script with steps, on a fresh cluster, by one of the engines.

A scenario is an operator script with a constant ``STEPS``, read without running the script:
``["create", name, fields]``, ``["patch", name, patch]``, ``["delete", name]``, ``["restart"]``,
``["sleep", seconds]``. After each step the driver waits until nothing changes any more.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import Any

from kopf._engine.cluster import EmbeddedCluster, RequestError

HERE = pathlib.Path(__file__).parent
PLURAL = "/apis/kopf.dev/v1/namespaces/default/kopfexamples"
QUIET = float(os.environ.get("CROSSCHECK_QUIET", "1.2"))
PATIENCE = 40.0
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "kopfexamples.kopf.dev"},
    "spec": {
        "group": "kopf.dev",
        "scope": "Namespaced",
        "names": {"plural": "kopfexamples", "singular": "kopfexample", "kind": "KopfExample"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@dataclasses.dataclass
class Outcome:
    """What is compared between engines."""

    objects: list[Any]
    events: list[Any]
    calls: list[Any]
    lines: list[str]
    log: str


@dataclasses.dataclass
class Engine:
    """A way to run operators: an interpreter with a package named kopf."""

    name: str
    python: str
    path: str = ""


class Run:
    """One scenario on one engine."""

    def __init__(self, engine: Engine, script: pathlib.Path) -> None:
        super().__init__()
        self._engine = engine
        self._script = script
        self._steps = read_steps(script)
        self._directory = tempfile.TemporaryDirectory()
        self._calls = pathlib.Path(self._directory.name, "calls")
        self._log = pathlib.Path(self._directory.name, "log")
        self._calls.touch()
        self._starts = 0

    def run(self) -> Outcome:
        with self._directory, EmbeddedCluster() as cluster:
            cluster.install(None, [DEFINITION])
            kubeconfig = pathlib.Path(self._directory.name, "kubeconfig")
            kubeconfig.write_text(cluster.kubeconfig_yaml)
            process = self._start(kubeconfig)
            try:
                self._settle(cluster, process, started=True)
                for step in self._steps:
                    if step[0] == "restart":
                        self._stop(process)
                        process = self._start(kubeconfig)
                        self._settle(cluster, process, started=True)
                    else:
                        perform(cluster, step)
                        self._settle(cluster, process)
            finally:
                self._stop(process)
            return self._outcome(cluster)

    def _start(self, kubeconfig: pathlib.Path) -> subprocess.Popen[bytes]:
        env = dict(os.environ, KUBECONFIG=str(kubeconfig), CALLS=str(self._calls))
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [self._engine.path, str(HERE)]))
        command = [self._engine.python, "-m", "kopf", "run", "-A", "--standalone", "--verbose"]
        command += ["--log-format", "plain", "--no-log-prefix", str(self._script)]
        self._starts += 1
        return subprocess.Popen(command, env=env, stderr=self._log.open("ab"))

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise

    def _settle(
        self, cluster: EmbeddedCluster, process: subprocess.Popen[bytes], started: bool = False
    ) -> None:
        """Wait until nothing has changed for some time."""
        deadline = time.monotonic() + PATIENCE
        last, since = None, time.monotonic()
        while time.monotonic() < deadline and process.poll() is None:
            versions = [o["metadata"]["resourceVersion"] for o in listed(cluster, PLURAL)]
            state = (versions, self._calls.stat().st_size, self._log.stat().st_size)
            if state != last or (started and not self._has_started()):
                last, since = state, time.monotonic()
            elif time.monotonic() - since > QUIET:
                return
            time.sleep(0.05)

    def _has_started(self) -> bool:
        return self._log.read_bytes().count(b"authentication has finished") >= self._starts

    def _outcome(self, cluster: EmbeddedCluster) -> Outcome:
        objects = [normalised(obj) for obj in listed(cluster, PLURAL)]
        events = [
            [event["type"], event["reason"], event["message"], event["involvedObject"]["name"]]
            for event in listed(cluster, "/api/v1/namespaces/default/events")
        ]
        calls = [json.loads(line) for line in self._calls.read_text().splitlines()]
        log = self._log.read_text()
        lines = without_repetitions(line for line in log.splitlines() if is_compared(line))
        return Outcome(objects, sorted(events), calls, lines, log)


def read_steps(script: pathlib.Path) -> list[list[Any]]:
    """Read the constant STEPS of a scenario."""
    for node in ast.parse(script.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "STEPS":
            steps: list[list[Any]] = ast.literal_eval(node.value)
            return steps
    raise ValueError(f"{script} has no STEPS")


def perform(cluster: EmbeddedCluster, step: list[Any]) -> None:
    """Do what a step says."""
    match step:
        case ["create", name, fields]:
            metadata = {"name": name, **fields.get("metadata", {})}
            body = {"apiVersion": "kopf.dev/v1", "kind": "KopfExample", **fields}
            cluster.request("POST", PLURAL, {**body, "metadata": metadata})
        case ["patch", name, patch]:
            kind = "application/merge-patch+json"
            cluster.request("PATCH", f"{PLURAL}/{name}", patch, content_type=kind)
        case ["delete", name]:
            with contextlib.suppress(RequestError):
                cluster.request("DELETE", f"{PLURAL}/{name}")
        case ["sleep", seconds]:
            time.sleep(seconds)
        case _:
            raise ValueError(f"unknown step: {step}")


def listed(cluster: EmbeddedCluster, path: str) -> list[Any]:
    return list(cluster.request("GET", path)["items"])


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?")


def normalised(obj: Any) -> Any:
    """An object without what differs from run to run."""
    meta = obj["metadata"]
    for name in ("uid", "resourceVersion", "managedFields", "generation"):
        meta.pop(name, None)
    return json.loads(_TIME.sub("TIME", json.dumps(obj, sort_keys=True)))


_COMPARED = re.compile(
    r"^(Handler|Daemon|Timer|Indexer|Activity|Webhook) '.*' (is|succeeded|failed|has|did)"
    r"|^(Creation|Updating|Deletion|Resuming) (is processed|is superseded)"
    r"|^(Adding|Removing) the finalizer|^Deleted, really|^Deletion, but"
    r"|^Throttling for|^Throttling is over|^note: "
)
# Lines that depend on who is faster, or on the echo of own writes, which we do not handle.
_RACING = re.compile(r" is still exiting\.|^Timer '.*' has exited |login_")


def is_compared(line: str) -> bool:
    """Whether a line of the log has to be the same on both engines."""
    return _COMPARED.search(line) is not None and _RACING.search(line) is None


def without_repetitions(lines: Iterable[str]) -> list[str]:
    """Drop repeated lines about finalizers: Kopf may ask for the same removal again."""
    kept: list[str] = []
    for line in lines:
        if " the finalizer" not in line or line not in kept:
            kept.append(line)
    return kept


def read_excuse(script: pathlib.Path) -> tuple[str, ...]:
    """Read which parts of the outcome differ, by the constant DIFFERS."""
    for node in ast.parse(script.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DIFFERS":
            return tuple(ast.literal_eval(node.value))
    return ()


def iter_scenarios() -> Iterator[pathlib.Path]:
    yield from sorted((HERE / "scenarios").glob("*.py"))
