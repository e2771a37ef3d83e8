"""Kubernetes events from Python: the engine posts them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kopf import _native
    from kopf._run import posting


class EventQueue:
    """Where ``kopf.event()`` and the loggers of objects put events. Can be used from any thread."""

    def __init__(self, native: _native.Operator) -> None:
        super().__init__()
        self._native = native

    def put_nowait(self, event: posting.K8sEvent) -> None:
        """Queue an event: the engine limits the rate, counts repetitions, and tries again."""
        reference = json.dumps(dict(event.ref))
        self._native.post_event(reference, event.type, event.reason, event.message)
