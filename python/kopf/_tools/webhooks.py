"""Webhook servers: local ones, and those that know the way from local clusters."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import hashlib
import ipaddress
import json
import logging
import os
import pathlib
import socket
import ssl
import tempfile
import urllib.parse
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
        import aiohttp.web

        async def serve(request: aiohttp.web.Request) -> aiohttp.web.Response:
            return await self._serve(fn, request)

        while True:
            cadata, context = self._build_ssl()
            path = (self.path or "").rstrip("/")
            app = aiohttp.web.Application()
            app.add_routes([aiohttp.web.post(f"{path}/{{id:.*}}", serve)])
            runner = aiohttp.web.AppRunner(app, handle_signals=False)
            await runner.setup()
            try:
                addr = self.addr or None
                port = self.port or self._allocate_free_port()
                site = aiohttp.web.TCPSite(
                    runner, addr, port, ssl_context=context, reuse_port=True, reuse_address=True
                )
                await site.start()
                yield self._client_config(context is not None, addr, port, cadata)
                await self._wait_for_new_files()
                logger.debug("Restarting with the renewed SSL certificate files.")
            finally:
                await runner.cleanup()

    def _client_config(
        self, secure: bool, addr: str | None, port: int, cadata: bytes | None
    ) -> reviews.WebhookClientConfig:
        schema = "https" if secure else "http"
        path = self.path or ""
        listening = self._build_url(schema, addr or "*", port, path)
        logger.debug(f"Listening for webhooks at {listening}")
        host = self.host or self.DEFAULT_HOST or self._get_accessible_addr(self.addr)
        url = self._build_url(schema, host, port, path)
        logger.debug(f"Accessing the webhooks at {url}")
        config = reviews.WebhookClientConfig(url=url)
        if cadata is not None:
            config["caBundle"] = base64.b64encode(cadata).decode("ascii")
        return config

    @staticmethod
    async def _serve(fn: reviews.WebhookFn, request: aiohttp.web.Request) -> aiohttp.web.Response:
        """Serve one request. Errors of the request itself become HTTP statuses."""
        import aiohttp.web

        transport = request.transport
        sslpeer = None if transport is None else transport.get_extra_info("peercert")
        try:
            review = json.loads(await request.text())
            response = await fn(
                review,
                webhook=request.match_info.get("id"),
                sslpeer=sslpeer,
                headers=dict(request.headers),
            )
        except admission.AmbiguousResourceError as e:
            raise aiohttp.web.HTTPConflict(reason=str(e) or None) from e
        except admission.UnknownResourceError as e:
            raise aiohttp.web.HTTPNotFound(reason=str(e) or None) from e
        except (admission.WebhookError, json.JSONDecodeError) as e:
            raise aiohttp.web.HTTPBadRequest(reason=str(e) or None) from e
        return aiohttp.web.json_response(response)

    @staticmethod
    def _allocate_free_port() -> int:
        with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("", 0))
            return int(s.getsockname()[1])

    @staticmethod
    def _get_accessible_addr(addr: str | None) -> str:
        """Get an address to connect to from an address to listen on."""
        if addr is None:
            return "localhost"
        try:
            parsed = ipaddress.ip_address(addr)
        except ValueError:
            return addr
        if not parsed.is_unspecified:
            return addr
        return "127.0.0.1" if parsed.version == 4 else "::1"

    @staticmethod
    def _build_url(schema: str, host: str, port: int, path: str) -> str:
        with contextlib.suppress(ValueError):
            host = f"[{ipaddress.IPv6Address(host)}]"
        usual = {"http": 80, "https": 443}[schema]
        netloc = host if port == usual else f"{host}:{port}"
        return urllib.parse.urlunsplit([schema, netloc, path, "", ""])

    def _build_ssl(self) -> tuple[bytes | None, ssl.SSLContext | None]:
        """Get the CA for clients and the context of the server; None for plain HTTP."""
        if self.insecure and self.context is not None:
            raise ValueError("Insecure mode cannot have an SSL context specified.")
        cadata = self.cadata
        if cadata is None and self.cafile is not None:
            cadata = pathlib.Path(self.cafile).read_bytes()
        context = self.context
        if context is None and not self.insecure:
            context = ssl.create_default_context(purpose=ssl.Purpose.CLIENT_AUTH)
        if context is not None:
            self._load_verification(context)
            own = self._load_certificate(context)
            generated = self.certfile is None or self.pkeyfile is None
            if cadata is None or generated:
                cadata = own
        if cadata is not None and self.cadump is not None:
            pathlib.Path(self.cadump).write_bytes(cadata)
        return cadata, context

    def _load_verification(self, context: ssl.SSLContext) -> None:
        """Load what certificates of clients are checked with."""
        if self.verify_mode is not None:
            context.verify_mode = self.verify_mode
        if self.verify_cafile or self.verify_capath or self.verify_cadata:
            logger.debug("Loading a CA for client certificate verification.")
            context.load_verify_locations(
                self.verify_cafile, self.verify_capath, self.verify_cadata
            )
            if context.verify_mode == ssl.CERT_NONE:
                context.verify_mode = ssl.CERT_OPTIONAL

    def _load_certificate(self, context: ssl.SSLContext) -> bytes:
        """Load the certificate of the server, or make one; return it."""
        if self.certfile is not None and self.pkeyfile is not None:
            logger.debug("Using a provided certificate for HTTPS.")
            context.load_cert_chain(self.certfile, self.pkeyfile, self.password)
            return pathlib.Path(self.certfile).read_bytes()
        logger.debug("Generating a self-signed certificate for HTTPS.")
        addr = self._get_accessible_addr(self.addr)
        host = self.host or self.DEFAULT_HOST or addr
        cert, pkey = self.build_certificate([host, addr, *self.extra_sans], self.password)
        with tempfile.TemporaryDirectory() as directory:
            certfile = pathlib.Path(directory, "cert.pem")
            pkeyfile = pathlib.Path(directory, "pkey.pem")
            certfile.write_bytes(cert)
            pkeyfile.write_bytes(pkey)
            context.load_cert_chain(certfile, pkeyfile, self.password)
        return cert

    def _digest(self) -> str:
        """Get a hash of all files of certificates."""
        digest = hashlib.sha256()
        for path in (self.cafile, self.certfile, self.pkeyfile, self.verify_cafile):
            if path is not None:
                digest.update(pathlib.Path(path).read_bytes())
        return digest.hexdigest()

    async def _wait_for_new_files(self) -> None:
        """Wait until files of certificates change; forever if there are none."""
        before = self._digest()
        while True:
            await asyncio.sleep(self.file_check_interval)
            if self._digest() != before:
                return

    @staticmethod
    def build_certificate(
        hostnames: Collection[str], password: str | None = None
    ) -> tuple[bytes, bytes]:
        """Make a self-signed certificate and its private key, in PEM."""
        return certificates.build_certificate(hostnames, password)


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
        try:
            from pyngrok import conf, ngrok
        except ImportError:
            raise MissingDependencyError(
                "The ngrok tunnel needs the package pyngrok: `pip install pyngrok`."
            ) from None
        if self.binary is not None:
            conf.get_default().ngrok_path = str(self.binary)
        if self.region is not None:
            conf.get_default().region = self.region
        if self.token is not None:
            ngrok.set_auth_token(self.token)

        tunnel: Any = None
        loop = asyncio.get_running_loop()
        server = WebhookServer(addr=self.addr, port=self.port, path=self.path, insecure=True)
        async with server:
            try:
                async for local in server(fn):
                    if tunnel is not None:
                        await loop.run_in_executor(None, ngrok.disconnect, tunnel.public_url)
                    port = urllib.parse.urlparse(local["url"] or "").port
                    tunnel = await loop.run_in_executor(
                        None, functools.partial(ngrok.connect, str(port), bind_tls=True)
                    )
                    url = f"{tunnel.public_url}{self.path or ''}"
                    logger.debug(f"Accessing the webhooks at {url}")
                    yield reviews.WebhookClientConfig(url=url)
            finally:
                if tunnel is not None:
                    await loop.run_in_executor(None, ngrok.disconnect, tunnel.public_url)


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
        server: WebhookNgrokTunnel | WebhookServer
        host = await self.guess_host()
        if host is None:
            logger.debug("Cluster detection failed, using an ngrok tunnel.")
            server = WebhookNgrokTunnel(addr=self.addr, port=self.port, path=self.path)
        else:
            logger.debug(f"Cluster detection found the hostname: {host}")
            server = WebhookServer(addr=self.addr, port=self.port, path=self.path, host=host)
        async with server:
            async for config in server(fn):
                yield config
