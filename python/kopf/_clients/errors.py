"""Errors that the cluster answers with."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    import aiohttp

_TEXT_MAX = 256
"""How many characters of an answer that is not JSON are kept."""


class RawStatusCause(TypedDict):
    """One of the reasons of an error."""

    field: str
    reason: str
    message: str


class RawStatusDetails(TypedDict):
    """What an error is about."""

    name: str
    uid: str
    retryAfterSeconds: int
    kind: str
    group: str
    causes: Collection[RawStatusCause]


class RawStatus(TypedDict):
    """An object of the kind ``Status``."""

    apiVersion: str
    kind: Literal["Status"]
    code: int
    status: Literal["Success", "Failure"]
    reason: str
    message: str
    details: RawStatusDetails


class APIError(Exception):
    """The cluster has refused a request."""

    def __init__(
        self,
        payload: RawStatus | str | None = None,
        *,
        status: int,
        headers: dict[str, str],
    ) -> None:
        args: tuple[object, ...] = ()
        if payload:
            is_text = isinstance(payload, str)
            args = (payload,) if is_text else (payload.get("message"), payload)  # type: ignore[union-attr]
        super().__init__(*args)
        self.status = status
        self.headers = headers
        self._known: Mapping[str, Any] = payload if isinstance(payload, dict) else {}

    def __repr__(self) -> str:
        described = [*map(repr, self.args), f"status={self.status!r}"]
        return f"{type(self).__name__}({', '.join(described)})"

    @property
    def code(self) -> int | None:
        """The code in the answer, which is usually the same as the status."""
        return self._known.get("code")

    @property
    def message(self) -> str | None:
        """What the cluster says."""
        return self._known.get("message")

    @property
    def details(self) -> RawStatusDetails | None:
        """Which object it is about, and why."""
        return self._known.get("details")


class APIClientError(APIError):
    """The request is wrong: all 4xx."""


class APIServerError(APIError):
    """The cluster is wrong: all 5xx."""


class APIUnauthorizedError(APIClientError):
    """401: the credentials are not accepted."""


class APIForbiddenError(APIClientError):
    """403: the operator may not do this."""


class APINotFoundError(APIClientError):
    """404: there is no such object or resource."""


class APIConflictError(APIClientError):
    """409: the object exists already, or was changed by others."""


class APIUnprocessableEntityError(APIClientError):
    """422: the object is invalid, or a test of a patch has failed."""


class APITooManyRequestsError(APIClientError):
    """429: the cluster is busy."""


class APISessionClosed(Exception):
    """The connection was closed because its credentials are not valid any more."""


_BY_STATUS: dict[int, type[APIError]] = {
    401: APIUnauthorizedError,
    403: APIForbiddenError,
    404: APINotFoundError,
    409: APIConflictError,
    422: APIUnprocessableEntityError,
    429: APITooManyRequestsError,
}


def _class_of(status: int) -> type[APIError]:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    by_hundreds: dict[int, type[APIError]] = {4: APIClientError, 5: APIServerError}
    return by_hundreds.get(status // 100, APIError)


async def _read(response: aiohttp.ClientResponse) -> Any:
    """Read what the cluster says; never anything else, which might be confidential."""
    import aiohttp

    try:
        payload = await response.json()
    except (json.JSONDecodeError, aiohttp.ContentTypeError, aiohttp.ClientConnectionError):
        payload = (await response.text()).strip()
    if isinstance(payload, dict) and payload.get("kind") != "Status":
        return None
    if isinstance(payload, str) and len(payload) >= _TEXT_MAX:
        return payload[: _TEXT_MAX - 3] + "..."
    return payload


async def check_response(response: aiohttp.ClientResponse) -> None:
    """Raise an error with the reason that the cluster has given."""
    import aiohttp

    if response.status < 400:
        return
    payload = await _read(response)
    try:
        response.raise_for_status()
    except aiohttp.ClientResponseError as e:
        headers = dict(response.headers)
        raise _class_of(response.status)(
            payload or None, status=response.status, headers=headers
        ) from e
