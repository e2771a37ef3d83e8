"""Errors that end an operator."""

from __future__ import annotations

from collections.abc import Mapping

from kopf._handlers import execution
from kopf._structs import ids


class ActivityError(Exception):
    """An activity of the operator, such as its startup, has failed for good."""

    def __init__(self, msg: str, *, outcomes: Mapping[ids.HandlerId, execution.Outcome]) -> None:
        super().__init__(msg)
        self.outcomes = outcomes
