"""Sub-handlers, and ``kopf.execute()`` that runs them."""

from __future__ import annotations

import collections.abc
import contextlib
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import cast

from kopf._handlers import (
    callbacks,
    causes,
    execution,
    invocation,
    lifecycles,
    progression,
    registries,
)
from kopf._handlers import handlers as handlers_

subregistry_var: ContextVar[registries.ChangingRegistry] = ContextVar("subregistry_var")
subexecuted_var: ContextVar[bool] = ContextVar("subexecuted_var")


class subhandling_context(contextlib.AbstractAsyncContextManager[None]):
    """Collect sub-handlers while a handler runs, and run them when it ends."""

    async def __aenter__(self) -> None:
        self._registry = registries.ChangingRegistry()
        self._context = invocation.context(
            [(subregistry_var, self._registry), (subexecuted_var, False)]
        )
        self._context.__enter__()

    async def __aexit__(self, exc_type: object, exc: object, tb: object) -> None:
        try:
            if exc_type is None and not subexecuted_var.get() and self._registry._handlers:
                await execute()
        finally:
            self._context.__exit__()


def _make_handler(
    fn: callbacks.ChangingFn, id: str | None, prefix: str | None
) -> handlers_.ChangingHandler:
    """Declare a function without any options as a sub-handler."""
    return handlers_.ChangingHandler(
        fn=fn,
        id=registries.generate_id(fn=fn, id=id, prefix=prefix),
        param=None,
        errors=None,
        timeout=None,
        retries=None,
        backoff=None,
        selector=None,
        labels=None,
        annotations=None,
        when=None,
        field=None,
        value=None,
        old=None,
        new=None,
        field_needs_change=None,
        initial=None,
        deleted=None,
        requires_finalizer=None,
        reason=None,
    )


def _registry_of_fns(
    fns: Iterable[callbacks.ChangingFn] | Mapping[str, callbacks.ChangingFn],
    prefix: str | None,
) -> registries.ChangingRegistry:
    registry = registries.ChangingRegistry()
    if isinstance(fns, collections.abc.Mapping):
        named = cast("Mapping[str, callbacks.ChangingFn]", fns)
        for id, fn in named.items():
            registry.append(_make_handler(fn, id, prefix))
    elif isinstance(fns, collections.abc.Iterable):
        for fn in fns:
            registry.append(_make_handler(fn, None, prefix))
    else:
        raise ValueError(f"fns must be a mapping or an iterable, got {type(fns)}.")
    return registry


async def execute(
    *,
    fns: Iterable[callbacks.ChangingFn] | None = None,
    handlers: Iterable[handlers_.ChangingHandler] | None = None,
    registry: registries.ChangingRegistry | None = None,
    lifecycle: execution.LifeCycleFn | None = None,
    cause: execution.Cause | None = None,
) -> None:
    """Run sub-handlers now: functions, handlers, a registry, or those declared so far.

    Without a call of this function, the declared sub-handlers run when their parent ends.
    """
    if lifecycle is None:
        lifecycle = execution.sublifecycle_var.get()
    if lifecycle is None:
        lifecycle = lifecycles.get_default_lifecycle()
    if cause is None:
        cause = execution.cause_var.get()
    parent: execution.Handler | None = execution.handler_var.get()

    if sum(1 for given in (fns, handlers, registry) if given is not None) > 1:
        raise TypeError("Only one of the fns, handlers, registry can be passed. Got more.")
    if fns is not None:
        registry = _registry_of_fns(fns, None if parent is None else parent.id)
    elif handlers is not None:
        registry = registries.ChangingRegistry()
        for handler in handlers:
            registry.append(handler)
    elif registry is None:
        if subexecuted_var.get():
            return
        subexecuted_var.set(True)
        registry = subregistry_var.get()

    if not isinstance(cause, causes.ChangingCause):
        raise RuntimeError(
            "Sub-handlers of event-handlers are not supported and have "
            "no practical use (there are no retries or state tracking)."
        )
    await _execute_registry(registry, lifecycle, cause)


async def _execute_registry(
    registry: registries.ChangingRegistry,
    lifecycle: execution.LifeCycleFn,
    cause: causes.ChangingCause,
) -> None:
    """Make one pass over sub-handlers; ask for another one if some are not finished."""
    settings = execution.subsettings_var.get()
    storage = settings.persistence.progress_storage
    owned = registry.get_resource_handlers(resource=cause.resource)
    chosen = registry.get_handlers(cause=cause)
    state = progression.State.from_storage(body=cause.body, storage=storage, handlers=owned)
    state = state.with_purpose(cause.reason).with_handlers(chosen)
    outcomes = await execution.execute_handlers_once(
        lifecycle=lifecycle,
        settings=settings,
        handlers=chosen,
        cause=cause,
        state=state,
        extra_context=subhandling_context,
    )
    progression.deliver_results(outcomes=outcomes, patch=cause.patch)
    state = state.with_outcomes(outcomes)
    state.store(storage=storage, body=cause.body, patch=cause.patch)

    for container in execution.subrefs_var.get():
        container.update(state)
    if not state.done:
        raise execution.HandlerChildrenRetry(delay=state.delay)
