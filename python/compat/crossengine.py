"""Runs the same operators under Kopf and under this package, and compares what they do.

    python compat/crossengine.py --kopf /path/to/venv-with-kopf/bin/python [names...]

Every run has a fresh embedded cluster. Compared: final objects, Kubernetes events, calls of
handlers in order, and messages about objects in the log in order. Scenarios with a restart are also
handed over from one engine to the other in the middle, in both directions.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE / "scenarios"))

import crosslib

from kopf._engine.cluster import EmbeddedCluster, RequestError

FILES = sorted((HERE / "scenarios").glob("*.py"))
QUIET = 1.6
LIMIT = 40.0
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
RUNTIME = re.compile(r"\d+:\d\d:\d\d(\.\d+)?")
VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp")


def definition(scenario: crosslib.Scenario) -> dict[str, Any]:
    """Define the resource of a scenario."""
    version: dict[str, Any] = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        },
    }
    if scenario.subresource:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{scenario.name}.{crosslib.GROUP}"},
        "spec": {
            "group": crosslib.GROUP,
            "scope": "Namespaced",
            "names": {
                "plural": scenario.name,
                "singular": scenario.name[:-1],
                "kind": scenario.name.capitalize(),
            },
            "versions": [version],
        },
    }


def scrub(text: str) -> str:
    """Remove what differs between any two runs."""
    return RUNTIME.sub("RUNTIME", UID.sub("UID", ISO.sub("TIME", text)))


def clean(body: dict[str, Any]) -> dict[str, Any]:
    """Prepare an object for the comparison."""
    meta = {k: v for k, v in body.get("metadata", {}).items() if k not in VOLATILE}
    return json.loads(scrub(json.dumps(body | {"metadata": meta}, sort_keys=True)))


class Run:
    """One operator under one engine with its own cluster."""

    def __init__(
        self,
        python: str,
        operator: str,
        scenarios: list[crosslib.Scenario],
        successor: str | None = None,
    ) -> None:
        self.python = python
        self.successor = successor or python
        self.operator = operator
        self.scenarios = scenarios
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="cross-"))
        self.calls = self.directory / "calls.jsonl"
        self.log = self.directory / "log.jsonl"
        self.calls.touch()
        self.cluster = EmbeddedCluster()
        kubeconfig = self.directory / "kubeconfig.yaml"
        kubeconfig.write_text(self.cluster.kubeconfig_yaml)
        self.probe = crosslib.Scenario("readies", (), False, operator, {})
        self.starts = 0
        defined = [definition(scenario) for scenario in (*scenarios, self.probe)]
        self.cluster.install(None, defined)
        self.environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "CROSS_CALLS": str(self.calls),
            "CROSS_OPERATOR": operator,
            "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE / "scenarios")]),
        }

    def start(self) -> None:
        files = [str(path) for path in FILES]
        environment = dict(self.environment)
        if self.python == sys.executable:
            environment["PYTHONPATH"] += os.pathsep + str(HERE.parent)
        command = [self.python, "-m", "kopf", "run", "-A", "--standalone", "--log-format=json"]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(
                [*command, *files], env=environment, stdout=log, stderr=log, cwd=HERE
            )

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return -1

    def url(self, scenario: crosslib.Scenario, name: str = "") -> str:
        path = f"/apis/{crosslib.GROUP}/v1/namespaces/default/{scenario.name}"
        return f"{path}/{name}" if name else path

    def objects(self, scenario: crosslib.Scenario) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.cluster.request("GET", self.url(scenario))["items"]
        return items

    def settle(self) -> None:
        """Wait until nothing has changed for a while."""
        started = quiet = time.monotonic()
        before: Any = None
        while time.monotonic() - quiet < QUIET and time.monotonic() - started < LIMIT:
            now = (
                self.calls.stat().st_size,
                [
                    (o["metadata"]["uid"], o["metadata"]["resourceVersion"])
                    for scenario in self.scenarios
                    for o in self.objects(scenario)
                ],
            )
            if now != before:
                before, quiet = now, time.monotonic()
            time.sleep(0.1)

    def ready(self) -> None:
        """Wait until the operator sees a new object, and a little longer for its other watches."""
        self.starts += 1
        name = f"start{self.starts}"
        self.apply(self.probe, crosslib.create(name))
        deadline = time.monotonic() + 60
        while f"ready-{name}" not in self.calls.read_text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(self.log.read_text()[-3000:])
            time.sleep(0.05)
        time.sleep(1.5)

    def apply(self, scenario: crosslib.Scenario, step: crosslib.Step) -> None:
        url = self.url(scenario, step.name)
        if step.verb == "create":
            meta = {"name": step.name, **step.body.get("metadata", {})}
            kind = scenario.name.capitalize()
            body = {"apiVersion": f"{crosslib.GROUP}/v1", "kind": kind, **step.body}
            self.cluster.request("POST", self.url(scenario), body | {"metadata": meta})
        elif step.verb == "patch":
            merge = "application/merge-patch+json"
            self.cluster.request("PATCH", url, dict(step.body), content_type=merge)
        elif step.verb == "delete":
            self.cluster.request("DELETE", url)

    def run(self) -> dict[str, Any]:
        self.start()
        try:
            self.ready()
            rounds = max(len(scenario.steps) for scenario in self.scenarios)
            for index in range(rounds):
                steps = [(s, s.steps[index]) for s in self.scenarios if index < len(s.steps)]
                if any(step.verb == "restart" for _, step in steps):
                    self.stop()
                    self.python = self.successor
                    self.start()
                    self.ready()
                for scenario, step in steps:
                    try:
                        self.apply(scenario, step)
                    except RequestError as e:
                        crosslib.call(scenario.name, f"driver: {step.verb} failed: {e}")
                self.settle()
            return self.collect()
        finally:
            self.code = self.stop()
            self.cluster.stop()

    def collect(self) -> dict[str, Any]:
        events = self.cluster.request("GET", "/api/v1/namespaces/default/events")["items"]
        calls = [json.loads(line) for line in self.calls.read_text().splitlines()]
        lines = []
        for text in self.log.read_text().splitlines():
            if text.startswith("{"):
                lines.append(json.loads(text))
        result: dict[str, Any] = {}
        for scenario in self.scenarios:
            kind = scenario.name.capitalize()
            result[scenario.name] = {
                "objects": [clean(body) for body in self.objects(scenario)],
                "calls": [
                    json.loads(scrub(json.dumps([c["handler"], c["facts"]], sort_keys=True)))
                    for c in calls
                    if c["kind"] == scenario.name
                ],
                "logs": [
                    f"{line['severity']}: {scrub(line['message'])}"
                    for line in lines
                    if (line.get("object") or {}).get("kind") == kind
                    # Kopf says this about its own touch key, depending on the timing.
                    and "finished with inconsistencies" not in line["message"]
                ],
                "events": sorted(
                    f"{e['type']} {e['reason']} {scrub(e.get('message') or '')}"
                    for e in events
                    if e["involvedObject"]["kind"] == kind
                ),
            }
        return result


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kopf", required=True, help="Python with the original Kopf installed")
    parser.add_argument("--report", help="write all observations as JSON")
    parser.add_argument("names", nargs="*", help="scenarios; all of them by default")
    options = parser.parse_args()
    for path in FILES:
        __import__(path.stem)
    chosen = [
        s for s in crosslib.SCENARIOS.values() if not options.names or s.name in options.names
    ]
    failed = 0
    report: dict[str, Any] = {}
    for operator in sorted({scenario.operator for scenario in chosen}):
        group = [scenario for scenario in chosen if scenario.operator == operator]
        kopf, ours = options.kopf, sys.executable
        theirs = Run(kopf, operator, group).run()
        others = {"": Run(ours, operator, group).run()}
        if any(step.verb == "restart" for scenario in group for step in scenario.steps):
            others["from kopf to ours: "] = Run(kopf, operator, group, successor=ours).run()
            others["from ours to kopf: "] = Run(ours, operator, group, successor=kopf).run()
        for title, scenario in ((t, s) for t in others for s in group):
            a, b = theirs[scenario.name], others[title][scenario.name]
            report[title + scenario.name] = {"kopf": a, "ours": b}
            different = [key for key in a if a[key] != b[key] and key not in scenario.excuses]
            if not a["calls"]:
                different.append("no calls under Kopf")
            failed += bool(different)
            verdict = "DIFF" if different else "same"
            print(f"{verdict} {title}{scenario.name} {' '.join(different)}")
            for key in different:
                if key in a:
                    print(f"    {key}\n      kopf: {json.dumps(a[key])}")
                    print(f"      ours: {json.dumps(b[key])}")
    print(f"{len(report) - failed} of {len(report)} scenarios are the same")
    if options.report:
        pathlib.Path(options.report).write_text(json.dumps(report, indent=1, sort_keys=True))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
