"""What the engine gets to know about an operator: plain data, as JSON."""

from __future__ import annotations

import dataclasses
import logging
import re
import urllib.parse
from collections.abc import Iterable
from typing import Any

from kopf._handlers import causes, execution, family, handlers, lifecycles, registries
from kopf._handlers.native import describe_handler, describe_selector
from kopf._models import adapting, resources
from kopf._settings import configuration
from kopf._settings.native import describe_diffbase, describe_progress
from kopf._structs import ids, references

logger = logging.getLogger("kopf._core.engines.probing")

_LIFECYCLES: dict[Any, str] = {
    lifecycles.all_at_once: "all_at_once",
    lifecycles.one_by_one: "one_by_one",
    lifecycles.randomized: "randomized",
    lifecycles.shuffled: "shuffled",
    lifecycles.asap: "asap",
}
_CYCLE = 0.01
_PYTHON_ONLY = {"admission"}
_SPECIAL = {"executor", "progress_storage", "diffbase_storage"}
_SELECTORS = {"label_selectors", "field_selectors", "shard_selectors"}


VAULT = ids.HandlerId("vault")
"""The login with credentials that the operator was given."""


def collect_handlers(
    registry: registries.OperatorRegistry, has_credentials: bool = False
) -> list[execution.Handler]:
    """Get all handlers that the engine has to call; their numbers are their places in the list."""
    collected: list[execution.Handler] = []
    for activity in causes.Activity:
        collected += registry._activities.get_handlers(activity=activity)
    if has_credentials:
        collected.append(_vault_login())
    for group in (
        registry._indexing,
        registry._watching,
        registry._spawning,
        registry._changing,
        registry._webhooks,
        registry._desiring,
    ):
        collected += [adapting.adapt(handler) for handler in group.get_all_handlers()]
    return collected


def _vault_login() -> handlers.ActivityHandler:
    def fn(**_: Any) -> None:
        return None

    return handlers.ActivityHandler(
        id=VAULT,
        fn=fn,
        param=None,
        errors=execution.ErrorsMode.IGNORED,
        timeout=None,
        retries=None,
        backoff=None,
        activity=causes.Activity.AUTHENTICATION,
    )


def describe_handlers(declared: Iterable[execution.Handler]) -> list[dict[str, Any]]:
    """Describe handlers for the engine."""
    described = []
    for handler in declared:
        description = describe_handler(handler)
        description["identity"] = id(handler.fn)
        doc = getattr(handler.fn, "__doc__", None)
        description["description"] = doc.strip().splitlines()[0] if doc and doc.strip() else None
        description["needs"] = list(family.needs_of(handler))
        description["children"] = [
            describe_selector(family.selector_of(kind)) for kind in family.children_of(handler)
        ]
        selector = getattr(handler, "selector", None)
        if selector is not None and selector.model is not None:
            description["definition"] = resources.resource_of(selector.model).definition()
        described.append(description)
    return described


def describe_lifecycle(lifecycle: execution.LifeCycleFn) -> str:
    """Get the name of a stock lifecycle; others are called in Python."""
    try:
        return _LIFECYCLES.get(lifecycle, "custom")
    except TypeError:
        return "custom"


def describe_namespaces(
    clusterwide: bool, namespaces: Iterable[references.NamespacePattern]
) -> list[dict[str, str]]:
    """Describe the served namespaces; none for the whole cluster."""
    if clusterwide:
        return []
    return [
        {"regex": pattern.pattern} if isinstance(pattern, re.Pattern) else {"glob": pattern}
        for pattern in namespaces
    ]


def describe_endpoint(endpoint: str | None) -> dict[str, Any] | None:
    """Describe where liveness is served: ``http://host:port/path``."""
    if not endpoint:
        return None
    parts = urllib.parse.urlsplit(endpoint)
    if parts.scheme != "http":
        raise ValueError(f"Unsupported scheme: {endpoint}")
    return {
        "host": parts.hostname or "0.0.0.0",
        "port": parts.port or 80,
        "path": parts.path or "/",
    }


def describe_settings(settings: configuration.OperatorSettings) -> dict[str, Any]:
    """Describe the settings that the engine knows, by dotted names."""
    described: dict[str, Any] = {}
    for section in dataclasses.fields(settings):
        if section.name in _PYTHON_ONLY:
            continue
        values = getattr(settings, section.name)
        for field in dataclasses.fields(values):
            if field.name.startswith("_") or field.name in _SPECIAL:
                continue
            value = getattr(values, field.name)
            name = f"{section.name}.{field.name}"
            described[name] = _selectors(value) if field.name in _SELECTORS else _plain(value)
    if settings.background.instant_exit_timeout is None:
        # The cycles of Kopf are those of the event loop; the engine only knows time.
        cycles = settings.background.instant_exit_zero_time_cycles or 0
        described["background.instant_exit_timeout"] = cycles * _CYCLE or None
    persistence = settings.persistence
    described["persistence.progress_storage"] = describe_progress(persistence.progress_storage)
    described["persistence.diffbase_storage"] = describe_diffbase(persistence.diffbase_storage)
    return described


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return list(value)


def _selectors(mapping: Any) -> list[Any]:
    """Describe texts by selectors. Those with functions are applied in Python only."""
    return [
        [describe_selector(selector), text]
        for selector, text in mapping.items()
        if selector.fn is None
    ]
