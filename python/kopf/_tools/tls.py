"""Certificates of webhook servers: which ones are used, and when they are renewed on the disk."""

from __future__ import annotations

import asyncio
import logging
import pathlib
import ssl
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kopf._tools.webhooks import WebhookServer

logger = logging.getLogger("kopf._kits.webhooks")


class Prepared(NamedTuple):
    """The CA for the clients, if there is one, and the context; plain HTTP without a context."""

    authority: bytes | None
    context: ssl.SSLContext | None


def prepare(server: WebhookServer, names: list[str]) -> Prepared:
    """Load or make the certificates of a server that is reachable by these names."""
    if server.insecure and server.context is not None:
        raise ValueError("Insecure mode cannot have an SSL context specified.")
    authority = server.cadata
    if authority is None and server.cafile is not None:
        authority = pathlib.Path(server.cafile).read_bytes()
    context = server.context
    if not server.insecure:
        context = context or ssl.create_default_context(purpose=ssl.Purpose.CLIENT_AUTH)
        _trust_clients(server, context)
        if server.certfile is None or server.pkeyfile is None:
            authority = _install_own(server, context, names)
        else:
            logger.debug("Using a provided certificate for HTTPS.")
            context.load_cert_chain(server.certfile, server.pkeyfile, server.password)
            authority = authority or pathlib.Path(server.certfile).read_bytes()
    if server.cadump is not None and authority is not None:
        pathlib.Path(server.cadump).write_bytes(authority)
    return Prepared(authority, context)


def _trust_clients(server: WebhookServer, context: ssl.SSLContext) -> None:
    """Load what certificates of clients are checked with."""
    if server.verify_mode is not None:
        context.verify_mode = server.verify_mode
    sources = (server.verify_cafile, server.verify_capath, server.verify_cadata)
    if any(sources):
        logger.debug("Loading a CA for client certificate verification.")
        context.load_verify_locations(*sources)
        if context.verify_mode == ssl.CERT_NONE:
            context.verify_mode = ssl.CERT_OPTIONAL


def _install_own(server: WebhookServer, context: ssl.SSLContext, names: list[str]) -> bytes:
    """Make a certificate, and install it. The interface of ``ssl`` needs files."""
    import tempfile

    logger.debug("Generating a self-signed certificate for HTTPS.")
    certificate, key = server.build_certificate(names, server.password)
    with tempfile.TemporaryDirectory() as directory:
        files = (pathlib.Path(directory, "cert.pem"), pathlib.Path(directory, "pkey.pem"))
        for path, content in zip(files, (certificate, key), strict=True):
            path.write_bytes(content)
        context.load_cert_chain(*files, server.password)
    return certificate


class Fingerprint(NamedTuple):
    """The content of the certificate files of a server at some moment."""

    paths: tuple[pathlib.Path, ...]
    digest: bytes

    @classmethod
    def of(cls, server: WebhookServer) -> Fingerprint:
        files = (server.cafile, server.certfile, server.pkeyfile, server.verify_cafile)
        paths = tuple(pathlib.Path(path) for path in files if path is not None)
        return cls(paths, _digest(paths))

    async def wait_for_change(self, interval: float) -> None:
        """Wait until the content is different; forever if there are no files."""
        while _digest(self.paths) == self.digest:
            await asyncio.sleep(interval)


def _digest(paths: tuple[pathlib.Path, ...]) -> bytes:
    import hashlib

    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).digest()
