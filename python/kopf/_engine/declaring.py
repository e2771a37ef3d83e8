"""Describes an operator for the engine: plain data, as JSON."""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import inspect
import itertools
import json
import logging
import re
from collections.abc import Callable, Iterable
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
_DELAYS_MAX = 100
_PYTHON_ONLY = {"admission"}
_SPECIAL = {"executor", "progress_storage", "diffbase_storage"}
_SELECTORS = {"label_selectors", "field_selectors", "shard_selectors"}


VAULT = ids.HandlerId("vault")
"""The login with credentials that the operator was given."""


def collect_handlers(
    registry: registries.OperatorRegistry, has_credentials: bool = False
) -> list[execution.Handler]:
    """Get all handlers that the engine has to call; their numbers are their places in the list."""
    collected = [adapting.adapt(handler) for handler in registered_handlers(registry)]
    if has_credentials:
        collected.append(_vault_login())
    return collected


def registered_handlers(registry: registries.OperatorRegistry) -> list[Any]:
    """Get all handlers of a registry, as they were declared."""
    registered: list[Any] = []
    for activity in causes.Activity:
        registered += registry._activities.get_handlers(activity=activity)
    for group in (
        registry._indexing,
        registry._watching,
        registry._spawning,
        registry._changing,
        registry._webhooks,
        registry._desiring,
    ):
        registered += group.get_all_handlers()
    return registered


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
        description["signature"] = signature_of(handler.fn)
        description["needs"] = list(family.needs_of(handler))
        description["children"] = [
            describe_selector(family.selector_of(kind)) for kind in family.children_of(handler)
        ]
        selector = getattr(handler, "selector", None)
        if selector is not None and selector.model is not None:
            description["definition"] = resources.resource_of(selector.model).definition()
        described.append(description)
    return described


class _Verbatim(str):
    """An annotation that is shown without quotes, as it is in the source."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def signature_of(fn: Callable[..., Any]) -> str | None:
    """Write the signature of a handler as in its source; none for what has no signature."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return None

    def plain(annotation: Any) -> Any:
        return _Verbatim(annotation) if isinstance(annotation, str) else annotation

    parameters = [
        it.replace(annotation=plain(it.annotation)) for it in signature.parameters.values()
    ]
    returned = plain(signature.return_annotation)
    signature = signature.replace(parameters=parameters, return_annotation=returned)
    prefix = "async def" if inspect.iscoroutinefunction(fn) else "def"
    return f"{prefix} {getattr(fn, '__name__', 'handler')}{signature}"


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
    import urllib.parse  # slow to import, rarely needed

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
    own = ["leadership", "snapshots"]
    for section in [*(field.name for field in dataclasses.fields(settings)), *own]:
        if section in _PYTHON_ONLY:
            continue
        values = getattr(settings, section)
        for field in dataclasses.fields(values):
            if field.name.startswith("_") or field.name in _SPECIAL:
                continue
            value = getattr(values, field.name)
            if section in own and value is None:
                continue
            name = f"{section}.{field.name}"
            described[name] = _selectors(value) if field.name in _SELECTORS else _plain(value)
    if settings.background.instant_exit_timeout is None:
        # The cycles of Kopf are those of the event loop; the engine only knows time.
        cycles = settings.background.instant_exit_zero_time_cycles or 0
        described["background.instant_exit_timeout"] = cycles * _CYCLE or None
    persistence = settings.persistence
    described["persistence.progress_storage"] = describe_progress(persistence.progress_storage)
    described["persistence.diffbase_storage"] = describe_diffbase(persistence.diffbase_storage)
    storages = [described[f"persistence.{name}_storage"] for name in ("progress", "diffbase")]
    if settings.snapshots.storages is None and None not in storages:
        # The engine gets them as objects, and cannot tell that they are built-in ones.
        described["snapshots.storages"] = json.dumps(storages, sort_keys=True)
    return described


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return list(value) if isinstance(value, collections.abc.Collection) else _first_delays(value)


_endless: collections.deque[tuple[object, list[float]]] = collections.deque(maxlen=16)


def _first_delays(delays: Iterable[float]) -> list[float]:
    """Read delays that may be endless or random: only the first ones, and only once."""
    for known, read in _endless:
        if known is delays:
            return read
    read = list(itertools.islice(delays, _DELAYS_MAX))
    _endless.append((delays, read))
    return read


def _selectors(mapping: Any) -> list[Any]:
    """Describe texts by selectors. Those with functions are applied in Python only."""
    return [
        [describe_selector(selector), text]
        for selector, text in mapping.items()
        if selector.fn is None
    ]
