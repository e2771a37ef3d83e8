"""Connections to clusters, and the vault that holds them."""

from __future__ import annotations

import asyncio
import base64
import collections
import contextlib
import dataclasses
import datetime
import inspect
import os
import ssl
import warnings
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, NewType, TypeVar, cast

if TYPE_CHECKING:
    import aiohttp

_T = TypeVar("_T")
_Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
_REMEMBERED = 3
_NO_CREDENTIALS = (
    "Ran out of valid credentials. Consider installing "
    "an API client library or adding a login handler. See more: "
    "https://docs.kopf.dev/en/stable/authentication/"
)


class LoginError(Exception):
    """The operator cannot log in to the cluster."""


class AccessError(Exception):
    """The operator cannot access the API of the cluster."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class KubeContext:
    """What all kinds of connections have."""

    server: str
    priority: int = 0
    default_namespace: str | None = None
    expiration: datetime.datetime | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ConnectionInfo(KubeContext):
    """An address of a cluster with credentials, as login handlers return it."""

    server: str
    ca_path: _Path | None = None
    ca_data: str | bytes | None = None
    insecure: bool | None = None
    username: str | None = None
    password: str | None = None
    scheme: str | None = None
    token: str | None = None
    certificate_path: _Path | None = None
    certificate_data: str | bytes | None = None
    private_key_path: _Path | None = None
    private_key_data: str | bytes | None = None
    default_namespace: str | None = None
    proxy_url: str | None = None
    trust_env: bool = False
    priority: int = 0
    expiration: datetime.datetime | None = None

    def __post_init__(self) -> None:
        for title, name in (
            ("CA", "ca"),
            ("certificate", "certificate"),
            ("private key", "private_key"),
        ):
            if getattr(self, f"{name}_path") and getattr(self, f"{name}_data"):
                raise ValueError(f"Both {title} path & data are set. Need only one.")

    def as_aiohttp_basic_auth(self) -> aiohttp.BasicAuth | None:
        """Deprecated: the headers contain the basic authentication."""
        warnings.warn(
            "as_aiohttp_basic_auth() is deprecated, stop calling it. "
            "The basic auth already comes from as_http_headers().",
            DeprecationWarning,
            stacklevel=1,
        )
        return None

    def as_http_headers(self) -> dict[str, str]:
        """Get the ``Authorization`` header, or nothing if there are no credentials for it."""
        if self.username and self.password:
            pair = f"{self.username}:{self.password}".encode()
            return {"Authorization": f"Basic {base64.b64encode(pair).decode('ascii')}"}
        if self.scheme or self.token:
            scheme = self.scheme or "Bearer"
            return {"Authorization": f"{scheme} {self.token}" if self.token else scheme}
        return {}

    def as_ssl_context(self) -> ssl.SSLContext:
        """Make an SSL context with the CA and the client certificate.

        Keys that are given as data are in temporary files while the context is made.
        """
        context = ssl.create_default_context(
            purpose=ssl.Purpose.SERVER_AUTH,
            cafile=self.ca_path,
            cadata=None if self.ca_data is None else _as_pem(self.ca_data),
        )
        with contextlib.ExitStack() as stack:
            certificate = _as_file(stack, self.certificate_path, self.certificate_data)
            private_key = _as_file(stack, self.private_key_path, self.private_key_data)
            if certificate and private_key:
                context.load_cert_chain(certfile=certificate, keyfile=private_key)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def _as_pem(data: str | bytes) -> str:
    """Decode PEM, or base64 of PEM."""
    raw = data.encode("ascii") if isinstance(data, str) else data
    return (raw if raw.startswith(b"-----BEGIN ") else base64.b64decode(raw)).decode("ascii")


def _as_file(
    stack: contextlib.ExitStack, path: _Path | None, data: str | bytes | None
) -> _Path | None:
    """Get a path to a file with the data; it is removed when the stack is closed."""
    if path or not data:
        return path or None
    import tempfile  # slow to import, rarely needed

    file = stack.enter_context(tempfile.NamedTemporaryFile(buffering=0))
    file.write(_as_pem(data).encode("ascii"))
    return file.name


@dataclasses.dataclass(frozen=True, kw_only=True)
class AiohttpSession(KubeContext):
    """A session of the user instead of credentials."""

    aiohttp_session: aiohttp.ClientSession


VaultKey = NewType("VaultKey", str)


@dataclasses.dataclass
class VaultItem:
    """One connection with the objects that were made for it."""

    info: KubeContext
    caches: dict[str, object] | None = None


def _utc(moment: datetime.datetime) -> datetime.datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=datetime.timezone.utc)


class Vault(AsyncIterable[tuple[VaultKey, KubeContext]]):
    """The valid connections of an operator. An empty vault makes the operator log in again."""

    def __init__(self, __src: Mapping[str, object] | None = None) -> None:
        super().__init__()
        self._current: dict[VaultKey, VaultItem] = {}
        self._invalid: dict[VaultKey, collections.deque[KubeContext]] = {}
        self._guard = asyncio.Condition()
        if __src is not None:
            self._add(__src)
        self._ready = not self.is_empty()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._current!r}>"

    def __bool__(self) -> bool:
        raise NotImplementedError("The vault should not be evaluated as bool.")

    async def __aiter__(self) -> AsyncIterator[tuple[VaultKey, KubeContext]]:
        async for key, item in self._items():
            yield key, item.info

    async def extended(
        self,
        factory: Callable[[KubeContext], _T],
        purpose: str | None = None,
    ) -> AsyncIterator[tuple[VaultKey, KubeContext, _T]]:
        """Iterate with an object per connection; it is made once per purpose."""
        purpose = repr(factory) if purpose is None else purpose
        async for key, item in self._items():
            async with self._guard:
                if item.caches is None:
                    item.caches = {}
                if purpose not in item.caches:
                    item.caches[purpose] = factory(item.info)
                made = item.caches[purpose]
            yield key, item.info, cast(_T, made)

    async def _items(self) -> AsyncIterator[tuple[VaultKey, VaultItem]]:
        """Yield connections until one of them is not invalidated by the consumer."""
        while True:
            async with self._guard:
                await self._guard.wait_for(lambda: self._ready)
                await self._expire()
                key, item = self.select()
            yield key, item
            async with self._guard:
                if self._current.get(key) is item:
                    return

    def select(self) -> tuple[VaultKey, VaultItem]:
        """Choose one of the connections with the highest priority."""
        if not self._current:
            raise LoginError(_NO_CREDENTIALS)
        top = max(item.info.priority for item in self._current.values())
        pairs = [(key, item) for key, item in self._current.items() if item.info.priority == top]
        if len(pairs) == 1:
            return pairs[0]
        import random  # slow to import, rarely needed

        return random.choice(pairs)

    async def expire(self) -> None:
        """Drop expired connections; wait for a new login if none is left."""
        async with self._guard:
            await self._expire()

    async def _expire(self) -> None:
        now = datetime.datetime.now(datetime.timezone.utc)
        expired = [
            key
            for key, item in self._current.items()
            if item.info.expiration is not None and _utc(item.info.expiration) <= now
        ]
        for key in expired:
            await self._flush(self._current.pop(key))
        if expired and not self._current:
            await self._relogin()

    async def _relogin(self) -> None:
        self._ready = False
        self._guard.notify_all()
        await self._guard.wait_for(lambda: self._ready)

    async def invalidate(
        self, key: VaultKey, info: KubeContext, *, exc: Exception | None = None
    ) -> None:
        """Drop a connection that the server refused; wait for a new login if none is left."""
        async with self._guard:
            item = self._current.get(key)
            if item is not None and item.info is info:
                del self._current[key]
                await self._flush(item)
                refused = self._invalid.setdefault(key, collections.deque(maxlen=_REMEMBERED))
                refused.append(item.info)
            if not self._current:
                await self._relogin()
            if not self._current and exc is not None:
                raise LoginError(_NO_CREDENTIALS) from exc

    async def populate(self, __src: Mapping[str, object]) -> None:
        """Add the results of a login. Connections that were refused before are left out."""
        async with self._guard:
            self._add(__src)
            self._ready = True
            self._guard.notify_all()

    def _add(self, src: Mapping[str, object]) -> None:
        for name, info in src.items():
            key = VaultKey(str(name))
            if not isinstance(info, KubeContext):
                raise ValueError("Only ConnectionInfo/AiohttpSession instances are accepted.")
            if info not in self._invalid.get(key, ()):
                self._current[key] = VaultItem(info=info)

    def is_empty(self) -> bool:
        """Whether there is no connection that is not expired."""
        now = datetime.datetime.now(datetime.timezone.utc)
        moments = [item.info.expiration for item in self._current.values()]
        return all(moment is not None and _utc(moment) <= now for moment in moments)

    async def wait_for_readiness(self) -> None:
        """Wait until there are results of a login."""
        async with self._guard:
            await self._guard.wait_for(lambda: self._ready)

    async def wait_for_emptiness(self) -> None:
        """Wait until a new login is needed."""
        async with self._guard:
            await self._guard.wait_for(lambda: not self._ready)

    async def close(self) -> None:
        """Close everything that was made for the connections."""
        async with self._guard:
            for item in self._current.values():
                await self._flush(item)

    async def _flush(self, item: VaultItem) -> None:
        for made in (item.caches or {}).values():
            close: Any = getattr(made, "close", None)
            if close is not None:
                done = close()
                if inspect.isawaitable(done):
                    await done
        item.caches = None
