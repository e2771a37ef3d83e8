"""Operators in processes of their own, on an embedded cluster: for tests."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from kopf._engine.cluster import EmbeddedCluster, RequestError

LIMIT = 45.0
# Another interpreter, to see what the original does.
PYTHON = os.environ.get("OPERATORS_PYTHON", sys.executable)


def define(
    group: str, kind: str, plural: str, *, version: str = "v1", subresource: bool = False
) -> dict[str, Any]:
    """Define a resource that accepts any content."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served: dict[str, Any] = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    if subresource:
        served["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [served],
        },
    }


class World:
    """A cluster, and operators in it."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.cluster = EmbeddedCluster()
        self.kubeconfig = directory / "kubeconfig.yaml"
        self.kubeconfig.write_text(self.cluster.kubeconfig_yaml)
        self.output = directory / "output.txt"
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *args: str, cwd: pathlib.Path | None = None) -> None:
        """Start ``kopf run`` with these arguments."""
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "PYTHONUNBUFFERED": "1"}
        with open(self.output, "ab") as output:
            process = subprocess.Popen(
                [PYTHON, "-m", "kopf", "run", *args],
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
            )
        self.processes.append(process)

    def stop(self) -> None:
        """Stop all operators; they must end by themselves and with success."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        codes = [process.wait(timeout=LIMIT) for process in self.processes]
        self.processes.clear()
        assert codes == [0] * len(codes), self.text()

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.cluster.stop()

    def text(self) -> str:
        return self.output.read_text() if self.output.exists() else ""

    def get(self, path: str) -> Any:
        """Get an object, or None."""
        try:
            return self.cluster.request("GET", path)
        except RequestError as e:
            if e.code == 404:
                return None
            raise

    def until(self, condition: Callable[[], Any]) -> Any:
        """Wait for a condition, and return its value."""
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            for process in self.processes:
                assert process.poll() is None, self.text()
            if value := condition():
                return value
            time.sleep(0.05)
        raise AssertionError(f"nothing happened in {LIMIT} seconds:\n{self.text()}")

    def says(self, text: str) -> None:
        """Wait until operators print a text."""
        self.until(lambda: text in self.text())
