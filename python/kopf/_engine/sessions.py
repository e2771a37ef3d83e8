"""Requests of the engine through sessions of users: for logins that return ``AiohttpSession``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kopf._structs import credentials

if TYPE_CHECKING:
    import aiohttp

    from kopf import _native

_SKIPPED_HEADERS = {"host", "content-length", "accept-encoding"}
_DECODED_HEADERS = {"content-encoding", "content-length", "transfer-encoding"}


class Sessions:
    """Sends requests, one task per request."""

    def __init__(self) -> None:
        super().__init__()
        self._sessions: list[credentials.AiohttpSession] = []
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def add(self, session: credentials.AiohttpSession) -> int:
        """Remember a session of a login; get the number by which the engine knows it."""
        if session not in self._sessions:
            self._sessions.append(session)
        return self._sessions.index(session)

    def start(self, request: _native.Request) -> None:
        """Send a request."""
        task = asyncio.create_task(self._send(request))
        self._tasks[request.id] = task
        task.add_done_callback(lambda _: self._tasks.pop(request.id, None))

    def cancel(self, request_id: int) -> None:
        """The engine is not interested in an answer any more."""
        task = self._tasks.get(request_id)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Cancel all requests, and close the sessions, as Kopf does."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for session in self._sessions:
            await session.aiohttp_session.close()

    async def _send(self, request: _native.Request) -> None:
        info = self._sessions[request.session]
        headers = {name: value for name, value in request.headers if name not in _SKIPPED_HEADERS}
        try:
            async with info.aiohttp_session.request(
                request.method,
                info.server.rstrip("/") + request.path,
                headers=headers,
                data=request.body() or None,
                timeout=_no_timeout(),
            ) as response:
                answered = [
                    (name, value)
                    for name, value in response.headers.items()
                    if name.lower() not in _DECODED_HEADERS
                ]
                request.respond(response.status, answered)
                async for chunk in response.content.iter_any():
                    if not request.chunk(chunk):
                        return
            request.end()
        except Exception as e:
            request.end(str(e) or repr(e))
        except asyncio.CancelledError:
            request.end("the request was cancelled")
            raise


def _no_timeout() -> aiohttp.ClientTimeout:
    """The engine has its own time limits, and watches are long."""
    import aiohttp

    return aiohttp.ClientTimeout(total=None, sock_read=None)
