"""Inner modules that public operators import anyway, and type annotations of all kinds."""
# ruff: noqa: F401, I001

import asyncio
import logging
from typing import Any

from crosslib import note
from kopf import ConnectionInfo, DaemonStopped, Patch, Resource
from kopf._cogs.configs.configuration import OperatorSettings
from kopf._cogs.structs import bodies, dicts, diffs, ephemera, patches, references
from kopf._cogs.structs.bodies import Body, Labels, Meta, RawEvent, Spec, Status
from kopf._cogs.structs.credentials import LoginError
from kopf._cogs.structs.diffs import Diff, diff
from kopf._cogs.structs.ephemera import Memo
from kopf._core.actions.execution import ErrorsMode, HandlerRetriesError
from kopf._core.actions.loggers import ObjectLogger
from kopf._core.intents.causes import Reason
from kopf._core.reactor.running import operator
from kopf._core.reactor.subhandling import subregistry_var

import kopf

STEPS = [("create", "one", {"spec": {"a": {"b": 1}}}), ("patch", "one", {"spec": {"a": {"b": 2}}})]

note(
    "same",
    OperatorSettings is kopf.OperatorSettings,
    Body is kopf.Body,
    ErrorsMode is kopf.ErrorsMode,
    Memo is kopf.Memo,
    asyncio.iscoroutinefunction(operator),
    issubclass(HandlerRetriesError, kopf.PermanentError),
)
note("diff", [list(item) for item in diff({"a": 1}, {"a": 2, "b": 3})])
note("dicts", dicts.resolve({"a": {"b": 1}}, "a.b"), dicts.parse_field("a.b"))
note("reasons", [str(reason.value) for reason in Reason])


@kopf.on.create("kopfexamples", annotations={"x": kopf.ABSENT})
@kopf.on.update("kopfexamples")
def change(
    body: Body,
    spec: Spec,
    status: Status,
    meta: Meta,
    labels: Labels,
    diff: Diff,
    patch: Patch,
    logger: ObjectLogger,
    resource: Resource,
    memo: Memo,
    reason: Reason,
    **kwargs: Any,
) -> None:
    note("types", *(type(x).__name__ for x in (body, spec, status, meta, diff, patch, memo)))
    note("logger", isinstance(logger, (logging.Logger, logging.LoggerAdapter)))
    note("resource", resource.plural, resource.group, str(resource), bool(resource.namespaced))
    note("reason", reason, str(reason), [tuple(item) for item in diff], repr(diff[0].op))
    note("sub", subregistry_var.get() is not None)
    note(
        "refs",
        bodies.build_owner_reference(body)["kind"],
        kopf.build_object_reference(body)["name"],
    )
