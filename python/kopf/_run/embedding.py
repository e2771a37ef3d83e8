"""The cluster inside of the process, for ``kopf run --embedded``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import click

from kopf._handlers import registries


def probes() -> str:
    """Choose an address for the probes of an operator, where ``kopf explain`` asks it."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}/healthz"


@contextlib.contextmanager
def cluster(operator: str | None = None) -> Iterator[Any]:
    """Start a cluster, and make it the current one for all clients in this process.

    The kubeconfig also tells where the probes of the operator are.
    """
    import tempfile  # takes half a megabyte, and few operators need it

    from kopf import _engine

    with _engine.EmbeddedCluster() as started, tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "kubeconfig.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(_kubeconfig(started, operator))
        before = os.environ.get("KUBECONFIG")
        os.environ["KUBECONFIG"] = path
        click.echo(f"export KUBECONFIG={path}", err=True)
        if operator is not None:
            click.echo(f"The web UI is at {started.serve_ui(_origin(operator), path)}", err=True)
        try:
            yield started
        finally:
            if before is None:
                del os.environ["KUBECONFIG"]
            else:
                os.environ["KUBECONFIG"] = before


def _origin(probes: str) -> str:
    """Tell where this machine reaches the probes at an address."""
    import urllib.parse

    url = urllib.parse.urlsplit(probes)
    host = url.hostname or "localhost"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"{url.scheme}://{f'[{host}]' if ':' in host else host}:{url.port or 80}"


def _kubeconfig(started: Any, operator: str | None) -> str:
    if operator is None:
        return str(started.kubeconfig_yaml)
    import yaml

    config = started.kubeconfig
    extension = {"url": _origin(operator)}
    extensions = [{"name": "kopf.dev/operator", "extension": extension}]
    config["clusters"][0]["cluster"]["extensions"] = extensions
    return yaml.safe_dump(config)


def install(
    started: Any,
    registry: registries.OperatorRegistry | None,
    manifests: Collection[str],
) -> None:
    """Create the resources of the handlers, then the objects of the manifests."""
    started.install_described(*describe(registry, manifests))


def describe(
    registry: registries.OperatorRegistry | None, manifests: Collection[str]
) -> tuple[str, str, str]:
    """Describe what the handlers and the manifests need in an empty cluster."""
    from kopf._engine.cluster import describe_wanted

    documents: list[Any] = []
    if manifests:
        import yaml

        for path in manifests:
            with open(path, encoding="utf-8") as f:
                documents += [document for document in yaml.safe_load_all(f) if document]
    handlers = registries.get_default_registry() if registry is None else registry
    return describe_wanted(handlers, [*_definitions(handlers, documents), *documents])


def _is_custom(document: Mapping[str, Any]) -> bool:
    group = document.get("apiVersion", "").rpartition("/")[0]
    return "." in group and not group.endswith(".k8s.io")


def _plural(kind: str, names: Collection[str]) -> str:
    """Guess the plural of a kind; a name that a handler uses is preferred."""
    single = kind.lower()
    candidates = [f"{single}s", f"{single}es", f"{single[:-1]}ies", single]
    return next((name for name in candidates if name in names), candidates[0])


def _definitions(
    registry: registries.OperatorRegistry, documents: Collection[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Define the kinds of documents that come without a definition, with free content."""
    defined = {
        (document["spec"]["group"], document["spec"]["names"]["kind"])
        for document in documents
        if document.get("kind") == "CustomResourceDefinition"
    }
    groups: tuple[Any, ...] = (registry._changing, registry._watching, registry._spawning)
    groups += (registry._indexing, registry._desiring)
    selectors = [selector for group in groups for selector in group.get_all_selectors()]
    known = {s.group for s in selectors if s.group and s.version and (s.any_name or s.plural)}
    names = {str(selector.any_name or selector.plural) for selector in selectors}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for document in filter(_is_custom, documents):
        group, _, version = document["apiVersion"].rpartition("/")
        kind = document["kind"]
        if (group, kind) in defined or group in known:
            continue
        plural = _plural(kind, names)
        found[group, kind] = _definition(group, version, kind, plural)
    return list(found.values())


def _definition(group: str, version: str, kind: str, plural: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
