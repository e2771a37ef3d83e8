"""Helpers of the tests of the engine's Python side."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from kopf._engine.cluster import EmbeddedCluster, RequestError

PLURAL = "/apis/kopf.dev/v1/namespaces/default/kopfexamples"
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


class Examples:
    """The objects of the tests."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        cluster.install(None, [DEFINITION])
        self._cluster = cluster

    def create(self, name: str = "one", **fields: Any) -> Any:
        metadata = {"name": name, **fields.pop("metadata", {})}
        body = {"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": metadata}
        return self._cluster.request("POST", PLURAL, body | fields)

    def get(self, name: str = "one") -> Any:
        try:
            return self._cluster.request("GET", f"{PLURAL}/{name}")
        except RequestError as e:
            if e.code == 404:
                return None
            raise

    def patch(self, patch: Any, name: str = "one") -> Any:
        kind = "application/merge-patch+json"
        return self._cluster.request("PATCH", f"{PLURAL}/{name}", patch, content_type=kind)

    def delete(self, name: str = "one") -> Any:
        return self._cluster.request("DELETE", f"{PLURAL}/{name}")


@pytest.fixture
def examples(kopf_cluster: EmbeddedCluster) -> Examples:
    return Examples(kopf_cluster)


async def eventually(condition: Any, timeout: float = 10.0) -> Any:
    """Wait until a condition holds; get its value."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"it never came: {condition}"
        await asyncio.sleep(0.01)
