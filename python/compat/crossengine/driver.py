"""Runs a group of scenarios on a fresh cluster, with one engine or with several of them."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from crossengine.groups import ALONE, LIBRARY, SHARED, Group, Scenario
from crossengine.observing import observe, parse_log, scrub
from kopf._engine.cluster import EmbeddedCluster, RequestError

PACKAGE = pathlib.Path(__file__).parent.parent.parent
QUIET = float(os.environ.get("CROSSENGINE_QUIET", "1.5"))
LIMIT = 60.0
STOPPING = 40.0
PROBE = Scenario("readies", "cross.dev", "readies", "Ready", ())
PEERINGS = (
    ("Namespaced", "kopfpeerings", "KopfPeering"),
    (
        "Cluster",
        "clusterkopfpeerings",
        "ClusterKopfPeering",
    ),
)


def define(
    group: str, plural: str, kind: str, *, scope: str = "Namespaced", subresource: bool = False
) -> dict[str, Any]:
    """Define a resource that accepts any content."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": schema}
    if subresource:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [version],
        },
    }


def quiet() -> float:
    """How long nothing must happen before a step counts as done; longer on a busy machine."""
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    return QUIET * min(max(1.0, busy / 2), 4.0)


class Run:
    """A group of scenarios under the given engines.

    ``engines`` are interpreters by the names of operators. With ``successor``, that one is used
    after the first restart.
    """

    def __init__(
        self, group: Group, engines: Mapping[str, str], successor: str | None = None
    ) -> None:
        self._group = group
        self._engines = dict(engines)
        self._successor = successor
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._starts: dict[str, int] = {}
        self._responses: dict[str, list[str]] = {}

    def run(self) -> dict[str, dict[str, Any]]:
        with contextlib.ExitStack() as stack:
            self._folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            self._cluster = stack.enter_context(EmbeddedCluster())
            self._calls = self._folder / "calls.jsonl"
            self._calls.touch()
            stack.callback(self._kill)
            self._prepare()
            for name in self._group.starts:
                self._start(name)
            self._settle()
            rounds = max(len(scenario.steps) for scenario in self._group.scenarios)
            for index in range(rounds):
                self._round(index)
            for name in list(self._processes):
                self._stop(name)
            calls = [json.loads(line) for line in self._calls.read_text().splitlines()]
            logs = {name: parse_log(self._text(name)) for name in self._group.operators}
            return observe(self._group, self._cluster, calls, logs, self._responses)

    def _prepare(self) -> None:
        scenarios = (PROBE, *self._group.scenarios)
        definitions = [
            define(s.group, s.plural, s.kind, subresource=s.subresource) for s in scenarios
        ]
        for scope, plural, kind in PEERINGS:
            definitions.append(define("kopf.dev", plural, kind, scope=scope))
        for _, _, kind in PEERINGS:
            meta = {"name": "crossed"}
            if kind == "KopfPeering":
                meta["namespace"] = "default"
            peering = {"apiVersion": "kopf.dev/v1", "kind": kind, "metadata": meta}
            definitions.append(peering)
        self._cluster.install(None, definitions)
        kubeconfig = self._folder / "kubeconfig.yaml"
        kubeconfig.write_text(self._cluster.kubeconfig_yaml)
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "CROSS_CALLS": str(self._calls),
            "CROSS_OPERATOR": self._group.name,
            "CROSS_CERTIFICATES": str(self._certificates()),
        }

    def _certificates(self) -> pathlib.Path:
        """Make the certificate of a webhook server: Kopf would need additional packages."""
        from kopf._tools.certificates import build_certificate

        for name, pem in zip(("cert", "pkey"), build_certificate(["localhost"]), strict=True):
            (self._folder / f"{name}.pem").write_bytes(pem)
        return self._folder

    def _round(self, index: int) -> None:
        steps = [(s, s.steps[index]) for s in self._group.scenarios if index < len(s.steps)]
        if any(step.verb == "restart" for _, step in steps):
            for name in list(self._processes):
                self._stop(name)
                if self._successor is not None:
                    self._engines[name] = self._successor
                self._start(name)
        for scenario, step in steps:
            self._perform(scenario, step)
        self._settle()

    def _perform(self, scenario: Scenario, step: Any) -> None:
        match step.verb:
            case "start":
                self._start(step.name)
            case "stop":
                self._stop(step.name)
            case "kopf":
                self._command(scenario, list(step.name))
            case "sleep":
                time.sleep(float(step.name))
            case "create" | "patch" | "delete":
                self._request(scenario, step)
            case "wait" | "restart":
                pass
            case _:
                raise ValueError(f"unknown step: {step}")

    def _request(self, scenario: Scenario, step: Any) -> None:
        url = f"{scenario.collection}/{step.name}"
        try:
            if step.verb == "create":
                meta = {"name": step.name, **step.body.get("metadata", {})}
                body = {"apiVersion": f"{scenario.group}/v1", "kind": scenario.kind, **step.body}
                self._cluster.request("POST", scenario.collection, body | {"metadata": meta})
            elif step.verb == "patch":
                merge = "application/merge-patch+json"
                self._cluster.request("PATCH", url, dict(step.body), content_type=merge)
            else:
                self._cluster.request("DELETE", url)
        except RequestError as e:
            self._respond(scenario, f"{step.verb} {step.name}: {e}")

    def _respond(self, scenario: Scenario, text: str) -> None:
        self._responses.setdefault(scenario.name, []).append(text)

    def _command(self, scenario: Scenario, args: list[str]) -> None:
        """Run a command, by the engine of the first operator."""
        python = next(iter(self._engines.values()))
        done = subprocess.run(
            [python, "-m", "kopf", *args],
            env=self._environment_of(python),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            cwd=self._folder,
        )
        self._respond(scenario, f"kopf {' '.join(args)}: {done.returncode}")

    def _environment_of(self, python: str) -> dict[str, str]:
        paths = [str(LIBRARY), str(SHARED)]
        if python == sys.executable:
            paths.append(str(PACKAGE))
        return {**self._environment, "PYTHONPATH": os.pathsep.join(paths)}

    def _start(self, name: str) -> None:
        options = list(self._group.operators[name])
        python = self._engines[name]
        command = [python, "-m", "kopf", "run", *options, "--log-format=json"]
        command += ["--verbose"] if self._group.is_script else []
        command += map(str, self._group.files)
        environment = self._environment_of(python) | {"CROSS_NAME": name}
        with open(self._log(name), "ab") as log:
            self._processes[name] = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, cwd=self._folder
            )
        self._starts[name] = self._starts.get(name, 0) + 1
        self._wait_for_start(name)

    def _log(self, name: str) -> pathlib.Path:
        return self._folder / f"{name}.log"

    def _text(self, name: str) -> str:
        return self._log(name).read_text() if self._log(name).exists() else ""

    def _wait_for_start(self, name: str) -> None:
        """Wait until the operator has started: a script has logged in, others see an object."""
        probe = f"start{self._starts[name]}"
        if not self._group.is_script:
            body = {"apiVersion": f"{PROBE.group}/v1", "kind": PROBE.kind}
            self._cluster.request("POST", PROBE.collection, body | {"metadata": {"name": probe}})
        deadline = time.monotonic() + LIMIT
        while self._processes[name].poll() is None:
            if self._group.is_script:
                mark = "authentication has finished"
                if self._text(name).count(mark) >= self._starts[name]:
                    return
            elif f"ready-{probe}" in self._calls.read_text():
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"{name} does not start: {self._text(name)[-3000:]}")
            time.sleep(0.05)
        if not self._group.may_fail:
            raise RuntimeError(f"{name} has failed: {self._text(name)[-3000:]}")

    def _stop(self, name: str) -> None:
        process = self._processes[name]
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOPPING)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{name} does not stop: {self._text(name)[-3000:]}") from None

    def _kill(self) -> None:
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()

    def _settle(self) -> None:
        """Wait until nothing has changed for a while."""
        enough, deadline = quiet(), time.monotonic() + LIMIT
        before, since = None, time.monotonic()
        while time.monotonic() < deadline and time.monotonic() - since < enough:
            now = self._state()
            if now != before:
                before, since = now, time.monotonic()
            time.sleep(0.1)

    def _state(self) -> Any:
        versions = [
            (o["metadata"]["uid"], o["metadata"]["resourceVersion"])
            for scenario in self._group.scenarios
            for o in self._cluster.request("GET", scenario.collection)["items"]
        ]
        texts = [len(scrub(self._text(name))) for name in self._group.starts]
        logs = texts if self._group.is_script else []
        return versions, self._calls.stat().st_size, logs


__all__ = ["ALONE", "Run"]
