"""Kubernetes events, posted at once. Those of ``kopf.event()`` and of loggers go to the engine."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

from kopf._clients import api, errors
from kopf._handlers.callbacks import Logger
from kopf._settings import configuration
from kopf._structs import bodies, references

MAX_MESSAGE_LENGTH = 1024
CUT_MESSAGE_INFIX = "..."


async def post_event(
    *,
    ref: bodies.ObjectReference,
    type: str,
    reason: str,
    message: str = "",
    resource: references.Resource,
    settings: configuration.OperatorSettings,
    logger: Logger,
    backoffs: float | Iterable[float] | None = None,
) -> None:
    """Post one event; failures are only logged. There are no events about events."""
    import aiohttp

    if (ref.get("apiVersion"), ref.get("kind")) == ("v1", "Event"):
        return
    namespace: Any = ref.get("namespace") or await api.get_default_namespace() or "default"
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    component = settings.posting.reporting_component
    text = _shorten(message)
    event = {
        "metadata": {"namespace": namespace, "generateName": settings.posting.event_name_prefix},
        "involvedObject": {**ref, "namespace": namespace},
        "type": type,
        "reason": reason,
        "message": text,
        "action": "Action?",
        "reportingComponent": component,
        "reportingInstance": settings.posting.reporting_instance,
        "source": {"component": component},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "eventTime": now,
    }
    try:
        await api.post(
            url=resource.get_url(namespace=namespace),
            headers={"Content-Type": "application/json"},
            payload=event,
            logger=logger,
            settings=settings,
            backoffs=backoffs,
        )
    except (errors.APIError, aiohttp.ClientError) as e:
        logger.warning(
            f"Failed to post an event. Ignoring and continuing. {_describe(e)}"
            f"Event: type={type!r}, reason={reason!r}, message={text!r}."
        )


def _describe(error: Exception) -> str:
    if isinstance(error, errors.APIError):
        return f"Code: {error.code}. Message: {error.message}. Details: {error.details}"
    status, message = getattr(error, "status", None), getattr(error, "message", None)
    described = "" if status is None else f"Status: {status}. "
    return described if message is None else f"{described}Message: {message}. "


def _shorten(message: str) -> str:
    """Cut the middle out of a message that is longer than the cluster accepts."""
    if len(message) <= MAX_MESSAGE_LENGTH:
        return message
    kept = MAX_MESSAGE_LENGTH - len(CUT_MESSAGE_INFIX)
    return message[: (kept + 1) // 2] + CUT_MESSAGE_INFIX + message[-(kept // 2) :]
