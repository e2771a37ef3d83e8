"""Requests by URLs."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
from collections.abc import AsyncIterator, Iterable, Sized
from typing import TYPE_CHECKING, Any

from kopf._clients import auth, errors
from kopf._handlers.callbacks import Logger
from kopf._settings import configuration

if TYPE_CHECKING:
    import aiohttp

_CHUNK = 1024 * 1024
_CLOSED_BY_PEER = "[SSL: APPLICATION_DATA_AFTER_CLOSE_NOTIFY]"


@auth.authenticated
async def get_default_namespace(*, context: auth.APIContext | None = None) -> str | None:
    """Get the namespace of the connection, such as that of a service account."""
    return _given(context).default_namespace


@auth.authenticated
async def read_sslcert(*, context: auth.APIContext | None = None) -> tuple[str, bytes]:
    """Get the host of the API server and its certificate."""
    import ssl
    import urllib.parse

    url = urllib.parse.urlparse(_given(context).server)
    host = url.hostname or ""
    read = functools.partial(ssl.get_server_certificate, (host, url.port or 443))
    certificate = await asyncio.get_running_loop().run_in_executor(None, read)
    return host, certificate.encode("ascii")


def _given(context: auth.APIContext | None) -> auth.APIContext:
    if context is None:
        raise RuntimeError("API instance is not injected by the decorator.")
    return context


@auth.authenticated
async def request(
    method: str,
    url: str,
    *,
    settings: configuration.OperatorSettings,
    payload: object | None = None,
    headers: dict[str, str] | None = None,
    timeout: aiohttp.ClientTimeout | None = None,
    backoffs: float | Iterable[float] | None = None,
    context: auth.APIContext | None = None,
    logger: Logger,
) -> aiohttp.ClientResponse:
    """Send a request, and send it again after errors that may pass."""
    import aiohttp

    context = _given(context)
    if "://" not in url:
        url = f"{context.server.rstrip('/')}/{url.lstrip('/')}"
    if timeout is None:
        limits = settings.networking
        timeout = aiohttp.ClientTimeout(
            total=limits.request_timeout, sock_connect=limits.connect_timeout
        )
    given: Any = settings.networking.error_backoffs if backoffs is None else backoffs
    delays: Iterable[Any] = given if isinstance(given, Iterable) else [given]
    total = f"/{len(delays) + 1}" if isinstance(delays, Sized) else ""
    what = f"{method.upper()} {url}"
    for number, delay in enumerate(itertools.chain(delays, [None]), start=1):
        attempt = f"Request attempt #{number}{total}"
        if number > 1:
            logger.debug(f"{attempt}: {what}")
        try:
            response = await context.session.request(
                method=method, url=url, json=payload, headers=headers, timeout=timeout
            )
            await errors.check_response(response)
        except RuntimeError as e:
            if not context.session.closed:
                raise
            logger.error(f"{attempt} failed; TCP closed; will re-authenticate: {what}")
            raise errors.APISessionClosed("Session is closed.") from e
        except (aiohttp.ClientConnectionError, TimeoutError, asyncio.TimeoutError) as e:
            if _CLOSED_BY_PEER in str(e):
                logger.error(f"{attempt} failed; SSL closed; will re-authenticate: {what}")
                raise errors.APISessionClosed("SSL data stream is closed.") from e
            await _wait(e, attempt, what, delay, settings, logger)
        except (
            errors.APIServerError,
            errors.APIForbiddenError,  # may happen while a cluster is being upgraded
            errors.APITooManyRequestsError,
        ) as e:
            await _wait(e, attempt, what, delay, settings, logger)
        else:
            if number > 1:
                logger.debug(f"{attempt} succeeded: {what}")
            return response
    raise RuntimeError("The last attempt has no outcome.")


async def _wait(
    error: Exception,
    attempt: str,
    what: str,
    delay: float | None,
    settings: configuration.OperatorSettings,
    logger: Logger,
) -> None:
    """Wait before the next attempt; raise the error if there is none."""
    if delay is None:
        logger.error(f"{attempt} failed; escalating: {what} -> {error!r}")
        raise error
    wanted = _retry_after(error) if isinstance(error, errors.APITooManyRequestsError) else None
    if wanted is not None and (settings.networking.enforce_retry_after or wanted > delay):
        logger.debug(
            f"Overriding the backoff {delay}s with the retry-after {wanted}s"
            f" from the server: {what}"
        )
        delay = wanted
    logger.error(f"{attempt} failed; will retry: {what} -> {error!r}")
    await asyncio.sleep(delay)


def _retry_after(error: errors.APIError) -> int | None:
    """Find for how many seconds the cluster does not want to be asked."""
    details: Any = error.details or {}
    found = (error.headers or {}).get("Retry-After") or details.get("retryAfterSeconds")
    return int(float(found)) if found else None


async def _json(method: str, url: str, **options: Any) -> Any:
    response = await request(method=method, url=url, **options)
    async with response:
        return await response.json()


async def get(
    url: str,
    *,
    settings: configuration.OperatorSettings,
    payload: object | None = None,
    headers: dict[str, str] | None = None,
    timeout: aiohttp.ClientTimeout | None = None,
    logger: Logger,
) -> Any:
    """Read an object or a list."""
    return await _json("get", **locals())


async def post(
    url: str,
    *,
    settings: configuration.OperatorSettings,
    payload: object | None = None,
    headers: dict[str, str] | None = None,
    timeout: aiohttp.ClientTimeout | None = None,
    backoffs: float | Iterable[float] | None = None,
    logger: Logger,
) -> Any:
    """Create an object."""
    return await _json("post", **locals())


async def patch(
    url: str,
    *,
    settings: configuration.OperatorSettings,
    payload: object | None = None,
    headers: dict[str, str] | None = None,
    timeout: aiohttp.ClientTimeout | None = None,
    logger: Logger,
) -> Any:
    """Change an object; the content type in the headers says how."""
    return await _json("patch", **locals())


async def delete(
    url: str,
    *,
    settings: configuration.OperatorSettings,
    payload: object | None = None,
    headers: dict[str, str] | None = None,
    timeout: aiohttp.ClientTimeout | None = None,
    logger: Logger,
) -> Any:
    """Delete an object."""
    return await _json("delete", **locals())


async def stream(
    url: str,
    *,
    settings: configuration.OperatorSettings,
    payload: object | None = None,
    headers: dict[str, str] | None = None,
    timeout: aiohttp.ClientTimeout | None = None,
    stopper: asyncio.Future[Any] | None = None,
    logger: Logger,
) -> AsyncIterator[Any]:
    """Read JSON documents line by line, until the end or until the stopper is set."""
    import aiohttp

    sent = {"payload": payload, "headers": headers, "timeout": timeout}
    opening = asyncio.ensure_future(
        request("get", url, settings=settings, logger=logger, **sent)  # type: ignore[arg-type]
    )
    try:
        waited = {opening} if stopper is None else {opening, stopper}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not opening.done():
            opening.cancel()
    if stopper is not None and stopper.done():
        if not opening.cancelled() and opening.done() and opening.exception() is None:
            opening.result().close()
        return
    response = opening.result()

    def close(_: object) -> None:
        response.close()

    if stopper is not None:
        stopper.add_done_callback(close)
    try:
        async with response:
            async for line in iter_jsonlines(response.content):
                yield json.loads(line)
    except aiohttp.ClientConnectionError:
        if stopper is None or not stopper.done():
            raise
    finally:
        if stopper is not None:
            stopper.remove_done_callback(close)


async def iter_jsonlines(
    content: aiohttp.StreamReader, chunk_size: int = _CHUNK
) -> AsyncIterator[bytes]:
    """Split a stream into lines of any length; aiohttp itself fails with long ones."""
    rest = b""
    async for chunk in content.iter_chunked(chunk_size):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield line
    if rest.strip():
        yield rest
