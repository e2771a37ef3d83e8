"""What kind of a local cluster the operator is connected to."""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.parse
from collections.abc import Mapping
from typing import Any

from kopf._clients.auth import vault_var
from kopf._structs import credentials


def _values(names: Any, key: str) -> list[str]:
    """Get the values of one key from a subject or an issuer."""
    return [value for group in names or () for name, value in group if name == key]


def classify(certificate: Mapping[str, Any]) -> str | None:
    """Tell the kind of a cluster by the certificate of its API server."""
    subject, issuer = certificate.get("subject"), certificate.get("issuer")
    names, issuers = _values(subject, "commonName"), _values(issuer, "commonName")
    if "k3s" in names or "k3s" in _values(subject, "organizationName"):
        return "k3d"
    if any(name.startswith("k3s-") for name in issuers):
        return "k3d"
    if "minikube" in names or "minikubeCA" in issuers:
        return "minikube"
    sans = [value for _, value in certificate.get("subjectAltName", ())]
    return "docker" if "docker-for-desktop" in sans else None


async def _read_certificate(info: credentials.ConnectionInfo) -> Mapping[str, Any]:
    url = urllib.parse.urlparse(info.server)
    if url.scheme != "https":
        return {}
    context = info.as_ssl_context()
    context.check_hostname = False
    _, writer = await asyncio.open_connection(url.hostname, url.port or 443, ssl=context)
    try:
        peer: Mapping[str, Any] | None = writer.get_extra_info("peercert")
        return peer or {}
    finally:
        writer.close()


def _read_version(info: credentials.ConnectionInfo) -> str:
    import urllib.request  # slow to import, rarely needed

    request = urllib.request.Request(
        f"{info.server.rstrip('/')}/version", headers=info.as_http_headers()
    )
    secure = info.server.startswith("https:")
    context: ssl.SSLContext | None = info.as_ssl_context() if secure else None
    with urllib.request.urlopen(request, context=context, timeout=10) as response:
        version: str = json.loads(response.read()).get("gitVersion", "")
        return version


async def detect() -> str | None:
    """Tell the kind of the current cluster: k3d, minikube, docker, or None."""
    vault = vault_var.get(None)
    if vault is None:
        return None
    _, item = vault.select()
    if not isinstance(item.info, credentials.ConnectionInfo):
        return None
    kind = classify(await _read_certificate(item.info))
    if kind is not None:
        return kind
    loop = asyncio.get_running_loop()
    version = await loop.run_in_executor(None, _read_version, item.info)
    return "k3d" if "+k3s" in version else None
