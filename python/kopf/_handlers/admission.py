"""Errors of admission requests, and the webhooks that make the cluster send such requests."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kopf._handlers import filters
from kopf._handlers.execution import PermanentError
from kopf._structs import references, reviews

if TYPE_CHECKING:
    from kopf._handlers import handlers

_TIMEOUT = 30
_VERSIONS = ("v1", "v1beta1")
_NOT_IN_NAMES = re.compile(r"[^\w.-]")


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


def build_webhooks(
    handlers_: Iterable[handlers.WebhookHandler],
    *,
    resources: Iterable[references.Resource],
    name_suffix: str,
    client_config: reviews.WebhookClientConfig,
    persistent_only: bool = False,
) -> list[dict[str, Any]]:
    """Describe the webhooks of handlers, for the configurations of operators that manage their own.

    The engine makes the configurations of ``settings.admission.managed`` itself.
    """
    known = [*resources]
    chosen = [handler for handler in handlers_ if handler.persistent or not persistent_only]
    return [
        {
            "name": _webhook_name(str(handler.id), name_suffix),
            "sideEffects": "NoneOnDryRun" if handler.side_effects else "None",
            "failurePolicy": "Ignore" if handler.ignore_failures else "Fail",
            "matchPolicy": "Equivalent",
            "rules": [
                _rule(handler, resource)
                for resource in known
                if handler.selector is not None and handler.selector.check(resource)
            ],
            "objectSelector": _label_selector(handler.labels),
            "clientConfig": _config_of(str(handler.id), client_config),
            "timeoutSeconds": _TIMEOUT,
            "admissionReviewVersions": [*_VERSIONS],
        }
        for handler in chosen
    ]


def _rule(handler: handlers.WebhookHandler, resource: references.Resource) -> dict[str, Any]:
    parts = (
        [resource.plural] if handler.subresource is None else [resource.plural, handler.subresource]
    )
    return {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "resources": ["/".join(parts)],
        "operations": [*(handler.operations or ("*",))],
        "scope": "*",
    }


def _webhook_name(handler_id: str, suffix: str) -> str:
    """Make a name of a DNS subdomain."""
    name = handler_id.replace("/", ".").replace("_", "-")
    name = _NOT_IN_NAMES.sub(lambda found: found[0].encode().hex(), name)
    return ".".join(part for part in (name, suffix) if part)


def _label_selector(labels: Any) -> dict[str, Any] | None:
    """Let the cluster check the labels as far as it can; functions are called later."""
    expressions: list[dict[str, Any]] = []
    for key, value in (labels or {}).items():
        if value is filters.PRESENT:
            expressions.append({"key": key, "operator": "Exists"})
        elif value is filters.ABSENT:
            expressions.append({"key": key, "operator": "DoesNotExist"})
        elif not callable(value):
            expressions.append({"key": key, "operator": "In", "values": [str(value)]})
    return {"matchExpressions": expressions} if expressions else None


def _config_of(handler_id: str, config: reviews.WebhookClientConfig) -> reviews.WebhookClientConfig:
    """Add the handler to the address of the server, so that only this handler is called."""
    import urllib.parse  # slow to import, rarely needed

    own = copy.deepcopy(config)
    part = urllib.parse.quote(handler_id)
    if (url := own.get("url")) is not None:
        own["url"] = f"{url.rstrip('/')}/{part}"
    if (service := own.get("service")) is not None:
        service["path"] = f"{service.get('path', '')}/{part}"
    return own
