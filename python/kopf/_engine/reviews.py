"""Admission: the webhook server is in Python, the engine answers the reviews."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from typing import TYPE_CHECKING, Any, cast

from kopf._handlers import admission
from kopf._settings import configuration
from kopf._structs import reviews

if TYPE_CHECKING:
    from kopf import _native

_ERRORS: dict[str, type[admission.WebhookError]] = {
    "incomplete": admission.MissingDataError,
    "unknown": admission.UnknownResourceError,
}
_NO_SERVER = (
    "Admission handlers exist, but no admission server/tunnel is configured "
    "in `settings.admission.server`. "
    "More: https://docs.kopf.dev/en/stable/admission/"
)
_SSL_PEER = "\0sslpeer"


class Reviews:
    """Passes reviews between webhook servers and the engine."""

    def __init__(self, native: _native.Operator) -> None:
        super().__init__()
        self._native = native
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    async def serve(self, settings: configuration.OperatorSettings) -> None:
        """Run the server of the settings; tell the engine how the cluster reaches it."""
        server: Any = settings.admission.server
        if server is None:
            raise Exception(_NO_SERVER)
        async with contextlib.AsyncExitStack() as stack:
            if isinstance(server, contextlib.AbstractAsyncContextManager):
                server = await stack.enter_async_context(server)
            async for client_config in server(self.review):
                managed = settings.admission.managed
                self._native.point_reviews(json.dumps(client_config), managed)

    async def review(
        self,
        request: reviews.Request,
        *,
        webhook: str | None = None,
        headers: reviews.Headers | None = None,
        sslpeer: reviews.SSLPeer | None = None,
        reason: object = None,
    ) -> reviews.Response:
        """Answer a review: this is the function that webhook servers call."""
        number = next(self._numbers)
        future = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        pairs = [(str(name), str(value)) for name, value in (headers or {}).items()]
        if sslpeer:
            pairs.append((_SSL_PEER, json.dumps(sslpeer, default=str)))
        try:
            self._native.review(number, json.dumps(request), webhook, pairs)
            return cast(reviews.Response, await future)
        finally:
            self._waiting.pop(number, None)

    def answer(self, number: int, answer: str, error: str | BaseException | None) -> None:
        """Take an answer of the engine: JSON, or the kind of an error with its text.

        A filter or a transformation that has failed is an error of its own.
        """
        future = self._waiting.get(number)
        if future is None or future.done():
            return
        if error is None:
            future.set_result(json.loads(answer))
        elif isinstance(error, BaseException):
            future.set_exception(error)
        else:
            future.set_exception(_ERRORS.get(answer, admission.WebhookError)(error))
