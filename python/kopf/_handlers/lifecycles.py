"""Lifecycles: which of the pending handlers of an object are called now."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from kopf._handlers import execution

logger = logging.getLogger("kopf._core.actions.lifecycles")

Handlers = Sequence[execution.Handler]


def all_at_once(handlers: Handlers, **_: Any) -> Handlers:
    """Call all handlers, one after another."""
    return handlers


def one_by_one(handlers: Handlers, **_: Any) -> Handlers:
    """Call the first handler; the others wait for the next time."""
    return handlers[:1]


def randomized(handlers: Handlers, **_: Any) -> Handlers:
    """Call one handler, chosen at random."""
    import random  # slow to import, rarely needed

    return [random.choice(handlers)] if handlers else []


def shuffled(handlers: Handlers, **_: Any) -> Handlers:
    """Call all handlers in random order."""
    import random  # slow to import, rarely needed

    return random.sample(handlers, k=len(handlers))


def asap(handlers: Handlers, *, state: execution.State, **_: Any) -> Handlers:
    """Call the handler with the fewest attempts; this is the default."""
    return sorted(handlers, key=lambda handler: state[handler.id].retries or 0)[:1]


_default_lifecycle: execution.LifeCycleFn = asap


def get_default_lifecycle() -> execution.LifeCycleFn:
    """Get the lifecycle of operators that are run without one."""
    return _default_lifecycle


def set_default_lifecycle(lifecycle: execution.LifeCycleFn | None) -> None:
    """Replace the lifecycle of operators that are run without one; None restores ``asap``."""
    global _default_lifecycle
    logger.warning(
        f"The default lifecycle is already set to {_default_lifecycle}, "
        f"overriding it to {lifecycle}."
    )
    _default_lifecycle = asap if lifecycle is None else lifecycle
