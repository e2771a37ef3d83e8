"""Sessions with the credentials of the operator."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar, cast

from kopf import _version
from kopf._structs import credentials

if TYPE_CHECKING:
    import aiohttp

vault_var: ContextVar[credentials.Vault] = ContextVar("vault_var")
"""The connections of the operator; set when it is spawned."""

_F = TypeVar("_F", bound=Callable[..., Any])


def authenticated(fn: _F) -> _F:
    """Give the function a session of the operator as ``context``, unless it has one already.

    If the credentials are refused, the function is called again with others.
    """

    @functools.wraps(fn)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        if "context" in kwargs:
            return _noted(kwargs["context"], await fn(*args, **kwargs))
        from kopf._clients import errors

        vault = vault_var.get()
        async for key, info, context in vault.extended(APIContext, "contexts"):
            try:
                return _noted(context, await fn(*args, **kwargs, context=context))
            except (errors.APIUnauthorizedError, errors.APISessionClosed) as e:
                await vault.invalidate(key, info, exc=e)
        raise RuntimeError("There are no other credentials to be tried.")

    return cast(_F, wrapper)


def _noted(context: APIContext, result: Any) -> Any:
    """Remember an open response, so that it can be closed with its session."""
    from aiohttp import ClientResponse

    if isinstance(result, ClientResponse):
        context.add_response(result)
    return result


class APIContext:
    """A session, and what else is needed for requests. There is one for each connection."""

    session: aiohttp.ClientSession
    server: str
    default_namespace: str | None
    responses: list[aiohttp.ClientResponse]

    def __init__(self, info: credentials.KubeContext) -> None:
        super().__init__()
        self.session = _make_session(info)
        if self.session.headers.get("User-Agent") is None:
            self.session.headers["User-Agent"] = f"kopf/{_version.version or 'unknown'}"
        self.server = info.server
        self.default_namespace = info.default_namespace
        self.responses = []

    def flush_closed_responses(self) -> None:
        """Forget responses that are closed."""
        self.responses = [response for response in self.responses if not response.closed]

    def add_response(self, response: aiohttp.ClientResponse) -> None:
        """Remember a response until it is closed."""
        self.flush_closed_responses()
        if not response.closed:
            self.responses.append(response)

    def close_open_responses(self) -> None:
        """Close all responses that are still being read."""
        for response in self.responses:
            response.close()
        self.responses = []

    async def close(self) -> None:
        """Close the session; called when its credentials are not used any more."""
        self.close_open_responses()
        await self.session.close()


def _make_session(info: credentials.KubeContext) -> aiohttp.ClientSession:
    import aiohttp

    if isinstance(info, credentials.AiohttpSession):
        return info.aiohttp_session
    if not isinstance(info, credentials.ConnectionInfo):
        raise TypeError(f"Unsupported credentials type: {info!r}")
    with warnings.catch_warnings():
        # Operators may have overridden it; ours only warns, and the headers are enough.
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="kopf")
        basic_auth = info.as_aiohttp_basic_auth()
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
        headers=info.as_http_headers(),
        auth=basic_auth,
        proxy=info.proxy_url,
        trust_env=info.trust_env,
    )
