"""The right of this replica to act, for handlers with effects outside of the cluster."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopf import _native

call_var: ContextVar[_native.Call] = ContextVar("call_var")


def term() -> int | None:
    """Return the number of the term of this replica, which grows with every change of the leader.

    Send it along with everything that a former leader must not do, and let the other side refuse
    smaller numbers. It is ``None`` without replicas, outside of handlers, and as soon as this
    replica has no right to act any more.
    """
    call = call_var.get(None)
    return None if call is None else call.term()
