"""Webhook servers: local ones, and those that know the way from local clusters."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import json
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator, Collection, Iterable
from typing import TYPE_CHECKING, Any

from kopf._handlers import admission
from kopf._structs import reviews
from kopf._tools import certificates, webhacks

if TYPE_CHECKING:
    import aiohttp.web

    StrPath = str | os.PathLike[str]
else:
    StrPath = str | os.PathLike

logger = logging.getLogger("kopf._kits.webhooks")


class MissingDependencyError(ImportError):
    """A server or a tunnel needs a package that is not installed."""


class WebhookServer(webhacks.WebhookContextManager):
    """A local HTTPS server.

    Without ``certfile`` and ``pkeyfile``, it makes a self-signed certificate for ``host``,
    ``addr`` and ``extra_sans``. ``cadata``, ``cafile`` go to the cluster; ``cadump`` is a file
    where the CA is saved. ``verify_...`` are for certificates of clients. Files are read again
    every ``file_check_interval`` seconds, and the server restarts when they change.
    """

    DEFAULT_HOST: str | None = None

    def __init__(
        self,
        *,
        addr: str | None = None,
        port: int | None = None,
        path: str | None = None,
        host: str | None = None,
        cadata: bytes | None = None,
        cafile: StrPath | None = None,
        cadump: StrPath | None = None,
        context: ssl.SSLContext | None = None,
        insecure: bool = False,
        certfile: StrPath | None = None,
        pkeyfile: StrPath | None = None,
        password: str | None = None,
        extra_sans: Iterable[str] = (),
        verify_mode: ssl.VerifyMode | None = None,
        verify_cafile: StrPath | None = None,
        verify_capath: StrPath | None = None,
        verify_cadata: str | bytes | None = None,
        file_check_interval: float = 60.0,
    ) -> None:
        super().__init__()
        self.addr = addr
        self.port = port
        self.path = path
        self.host = host
        self.cadata = cadata
        self.cafile = cafile
        self.cadump = cadump
        self.context = context
        self.insecure = insecure
        self.certfile = certfile
        self.pkeyfile = pkeyfile
        self.password = password
        self.extra_sans = extra_sans
        self.verify_mode = verify_mode
        self.verify_cafile = verify_cafile
        self.verify_capath = verify_capath
        self.verify_cadata = verify_cadata
        self.file_check_interval = file_check_interval

    async def __call__(self, fn: reviews.WebhookFn) -> AsyncIterator[reviews.WebhookClientConfig]:
        from kopf._tools import tls  # slow to import, rarely needed

        while True:
            files = tls.Fingerprint.of(self)
            async with self._listening(fn) as config:
                yield config
                await files.wait_for_change(self.file_check_interval)
                logger.debug("Restarting with the renewed SSL certificate files.")

    @contextlib.asynccontextmanager
    async def _listening(self, fn: reviews.WebhookFn) -> AsyncIterator[reviews.WebhookClientConfig]:
        """Accept requests for the duration of a block, which gets the address for the cluster."""
        from aiohttp import web

        from kopf._tools import tls

        reachable = _reachable(self.addr)
        host = self.host or self.DEFAULT_HOST or reachable
        authority, context = tls.prepare(self, [host, reachable, *self.extra_sans])
        scheme = "http" if context is None else "https"
        path = self.path or ""
        app = web.Application()
        app.router.add_post(path.rstrip("/") + "/{id:.*}", functools.partial(_respond, fn))
        runner = web.AppRunner(app, handle_signals=False)
        await runner.setup()
        try:
            port = self.port or _free_port()
            shared = {"reuse_port": True, "reuse_address": True}
            site = web.TCPSite(runner, self.addr or None, port, ssl_context=context, **shared)
            await site.start()
            local = _url(scheme, self.addr or "*", port, path)
            logger.debug(f"Listening for webhooks at {local}")
            config = reviews.WebhookClientConfig(url=_url(scheme, host, port, path))
            logger.debug(f"Accessing the webhooks at {config.get('url')}")
            if authority is not None:
                config["caBundle"] = base64.b64encode(authority).decode("ascii")
            yield config
        finally:
            await runner.cleanup()

    @staticmethod
    def build_certificate(
        hostnames: Collection[str], password: str | None = None
    ) -> tuple[bytes, bytes]:
        """Make a self-signed certificate and its private key, in PEM."""
        return certificates.build_certificate(hostnames, password)


async def _respond(fn: reviews.WebhookFn, request: aiohttp.web.Request) -> aiohttp.web.Response:
    """Answer one request. What is wrong with the request itself becomes an HTTP status."""
    from aiohttp import web

    peer = request.get_extra_info("peercert")
    facts: dict[str, Any]
    facts = {"webhook": request.match_info.get("id"), "headers": dict(request.headers)}
    try:
        answer = await fn(json.loads(await request.text()), sslpeer=peer, **facts)
    except (admission.WebhookError, json.JSONDecodeError) as e:
        status = next((s for kind, s in _STATUSES.items() if isinstance(e, kind)), 400)
        raise _http_errors()[status](reason=str(e) or None) from e
    return web.json_response(answer)


_STATUSES: dict[type[Exception], int] = {
    admission.AmbiguousResourceError: 409,
    admission.UnknownResourceError: 404,
}


def _http_errors() -> dict[int, type[aiohttp.web.HTTPError]]:
    from aiohttp import web

    known: tuple[type[web.HTTPError], ...]
    known = (web.HTTPBadRequest, web.HTTPNotFound, web.HTTPConflict)
    return {error.status_code: error for error in known}


def _free_port() -> int:
    """Find a port that is not in use."""
    with socket.create_server(("", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _reachable(addr: str | None) -> str:
    """Get an address to connect to from an address to listen on."""
    import ipaddress

    if addr is None:
        return "localhost"
    loopbacks = {ipaddress.IPv4Address(0): "127.0.0.1", ipaddress.IPv6Address(0): "::1"}
    try:
        return loopbacks.get(ipaddress.ip_address(addr), addr)
    except ValueError:
        return addr  # it is a name


def _url(scheme: str, host: str, port: int, path: str) -> str:
    """Write a URL; the usual port of the scheme is left out."""
    import ipaddress
    import urllib.parse

    with contextlib.suppress(ValueError):
        host = f"[{ipaddress.IPv6Address(host)}]"
    where = host if (scheme, port) in _USUAL_PORTS else f"{host}:{port}"
    return urllib.parse.urlunsplit((scheme, where, path, "", ""))


_USUAL_PORTS = (("http", 80), ("https", 443))


class WebhookK3dServer(WebhookServer):
    """A server for clusters in k3d/k3s on this host."""

    DEFAULT_HOST = "host.k3d.internal"


class WebhookMinikubeServer(WebhookServer):
    """A server for clusters in Minikube on this host."""

    DEFAULT_HOST = "host.minikube.internal"


class WebhookDockerDesktopServer(WebhookServer):
    """A server for clusters in Docker Desktop on this host."""

    DEFAULT_HOST = "host.docker.internal"


class WebhookNgrokTunnel(webhacks.WebhookContextManager):
    """A server behind a public tunnel of ngrok; needs the package ``pyngrok``."""

    def __init__(
        self,
        *,
        addr: str | None = None,
        port: int | None = None,
        path: str | None = None,
        token: str | None = None,
        region: str | None = None,
        binary: StrPath | None = None,
    ) -> None:
        super().__init__()
        self.addr = addr
        self.port = port
        self.path = path
        self.token = token
        self.region = region
        self.binary = binary

    async def __call__(self, fn: reviews.WebhookFn) -> AsyncIterator[reviews.WebhookClientConfig]:
        import urllib.parse

        tunnels = _Tunnels(_load_ngrok(self))
        server = WebhookServer(addr=self.addr, port=self.port, path=self.path, insecure=True)
        async with server:
            try:
                async for local in server(fn):
                    port = urllib.parse.urlsplit(local.get("url") or "").port
                    url = await tunnels.replace(str(port)) + (self.path or "")
                    logger.debug(f"Accessing the webhooks at {url}")
                    yield reviews.WebhookClientConfig(url=url)
            finally:
                await tunnels.close()


def _load_ngrok(options: WebhookNgrokTunnel) -> Any:
    """Import and configure the library that controls ngrok."""
    try:
        from pyngrok import conf, ngrok  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise MissingDependencyError(
            "The ngrok tunnel needs the package pyngrok: `pip install pyngrok`."
        ) from None
    config = conf.get_default()
    for name, value in (("ngrok_path", options.binary), ("region", options.region)):
        if value is not None:
            setattr(config, name, str(value))
    if options.token is not None:
        ngrok.set_auth_token(options.token)
    return ngrok


class _Tunnels:
    """At most one open tunnel at a time. The library blocks, so it is called in threads."""

    def __init__(self, ngrok: Any) -> None:
        self._ngrok = ngrok
        self._url: str | None = None

    async def replace(self, port: str) -> str:
        """Open a tunnel to a local port, and get its public URL."""
        await self.close()
        tunnel = await asyncio.to_thread(self._ngrok.connect, port, bind_tls=True)
        self._url = url = str(tunnel.public_url)
        return url

    async def close(self) -> None:
        url, self._url = self._url, None
        if url is not None:
            await asyncio.to_thread(self._ngrok.disconnect, url)


class ClusterDetector:
    """Finds out by which name a local cluster sees this host."""

    @staticmethod
    async def guess_host() -> str | None:
        """Guess by the certificate of the API server, then by its version."""
        from kopf._tools import detection

        kind = await detection.detect()
        return {
            "k3d": WebhookK3dServer.DEFAULT_HOST,
            "minikube": WebhookMinikubeServer.DEFAULT_HOST,
            "docker": WebhookDockerDesktopServer.DEFAULT_HOST,
        }.get(kind or "")


class WebhookAutoServer(ClusterDetector, WebhookServer):
    """A local server that finds out by which name the cluster sees it."""

    async def __call__(self, fn: reviews.WebhookFn) -> AsyncIterator[reviews.WebhookClientConfig]:
        host = self.DEFAULT_HOST = await self.guess_host()
        if host is None:
            logger.debug("Cluster detection failed, running a simple local server.")
        else:
            logger.debug(f"Cluster detection found the hostname: {host}")
        async for config in super().__call__(fn):
            yield config


class WebhookAutoTunnel(ClusterDetector, webhacks.WebhookContextManager):
    """The same, with a tunnel for clusters that are not on this host."""

    def __init__(
        self,
        *,
        addr: str | None = None,
        port: int | None = None,
        path: str | None = None,
    ) -> None:
        super().__init__()
        self.addr = addr
        self.port = port
        self.path = path

    async def __call__(self, fn: reviews.WebhookFn) -> AsyncIterator[reviews.WebhookClientConfig]:
        found = await self.guess_host()
        where: dict[str, Any] = {"addr": self.addr, "port": self.port, "path": self.path}
        if found is not None:
            logger.debug(f"Cluster detection found the hostname: {found}")
            configs = _serve_and_close(WebhookServer(host=found, **where), fn)
        else:
            logger.debug("Cluster detection failed, using an ngrok tunnel.")
            configs = _serve_and_close(WebhookNgrokTunnel(**where), fn)
        async for config in configs:
            yield config


async def _serve_and_close(
    server: WebhookServer | WebhookNgrokTunnel, fn: reviews.WebhookFn
) -> AsyncIterator[reviews.WebhookClientConfig]:
    async with server:
        async for config in server(fn):
            yield config
