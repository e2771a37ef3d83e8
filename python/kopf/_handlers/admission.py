"""Errors of admission requests."""

from __future__ import annotations

from kopf._handlers.execution import PermanentError


class AdmissionError(PermanentError):
    """Refuses an admission request, with a message and a code for the user."""

    def __init__(self, message: str | None = "", code: int | None = 500) -> None:
        super().__init__(message)
        self.code = code


class WebhookError(Exception):
    """The admission request itself is wrong, apart from the object in it."""


class MissingDataError(WebhookError):
    """The admission request has no object or no user."""


class UnknownResourceError(WebhookError):
    """No handler is for the resource of the admission request."""


class AmbiguousResourceError(WebhookError):
    """Several resources fit the admission request."""
