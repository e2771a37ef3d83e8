"""The engine: it watches the cluster, decides which handlers are called, and writes the results.

The engine is native code with threads of its own. This package is its Python side: it declares the
handlers, calls them in the event loop, and answers what only Python can decide. The other modules
of the framework use the names below and never the native module itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from kopf._engine.cluster import EmbeddedCluster

if TYPE_CHECKING:
    from kopf._handlers import registries
    from kopf._settings import configuration

__all__ = [
    "NATIVE_COMMANDS",
    "EmbeddedCluster",
    "build_certificate",
    "build_manifests",
    "native_cli",
    "spawn",
]

NATIVE_COMMANDS: Mapping[str, str] = {
    "cluster": "Run a Kubernetes API server on this machine.",
    "explain": "Tell what a running operator does about an object, and why.",
}
"""Commands of the native tool that are available as commands of ``kopf``, with their help."""


async def spawn(**options: Any) -> Collection[asyncio.Task[Any]]:
    """Start an operator as a task of the running loop; see ``kopf._run.running``."""
    from kopf._engine.running import Runner

    runner = Runner(**options)
    return [asyncio.create_task(runner.run(), name="kopf operator")]


def native_cli(argv: list[str]) -> int:
    """Run a command of the native tool; get its exit code."""
    from kopf import _native

    return _native.run_command(["kopf", *argv])


def build_manifests(
    *,
    registry: registries.OperatorRegistry,
    settings: configuration.OperatorSettings,
    name: str,
    image: str,
    namespace: str = "default",
    serves: Collection[str] = (),
) -> dict[str, str]:
    """Make the manifests of an operator, with the least rights that its handlers need.

    The result is the contents of files by their names, for ``kubectl apply -k``. Without namespaces
    in ``serves``, the rights are for the whole cluster.
    """
    import json

    from kopf import _native
    from kopf._engine import declaring

    declaration = {
        "handlers": declaring.describe_handlers(declaring.collect_handlers(registry)),
        "settings": declaring.describe_settings(settings),
    }
    files = _native.build_manifests(
        json.dumps(declaration), name, namespace, list(serves) or None, image
    )
    return dict(files)


def build_certificate(
    hostnames: Collection[str], password: str | None = None
) -> tuple[bytes, bytes]:
    """Make a self-signed certificate and its private key, both in PEM."""
    from kopf import _native

    if password is not None:
        raise ValueError("Private keys with passwords need the package cryptography.")
    certificate, key = _native.build_certificate(list(hostnames))
    return certificate.encode("ascii"), key.encode("ascii")
