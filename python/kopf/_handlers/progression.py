"""The progress of handlers: their states, and the records of these states on objects.

The engine does this for top-level handlers. This module does it for sub-handlers.
All moments are counted from one base, so that one pass over the handlers has one clock.
"""

from __future__ import annotations

import asyncio
import collections.abc
import copy
import dataclasses
import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, overload

from kopf._handlers import execution
from kopf._settings import progress
from kopf._structs import bodies, ids, patches


def _seconds(value: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=value)


def _get_basetime() -> datetime.datetime:
    """The moment when the clock of the loop was zero."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return now - _seconds(asyncio.get_running_loop().time())


def _now(basetime: datetime.datetime) -> datetime.datetime:
    return basetime + _seconds(asyncio.get_running_loop().time())


@dataclasses.dataclass(frozen=True)
class HandlerState(execution.HandlerState):
    """The state of one handler. Only active states decide whether the work is done."""

    active: bool
    basetime: datetime.datetime
    started: datetime.datetime
    stopped: datetime.datetime | None = None
    delayed: datetime.datetime | None = None
    purpose: str | None = None
    retries: int = 0
    success: bool = False
    failure: bool = False
    message: str | None = None
    subrefs: Collection[ids.HandlerId] = ()
    _origin: progress.ProgressRecord | None = None

    @property
    def finished(self) -> bool:
        return bool(self.success or self.failure)

    @property
    def sleeping(self) -> bool:
        if self.finished or self.delayed is None:
            return False
        return self.delayed > _now(self.basetime)

    @property
    def awakened(self) -> bool:
        return not self.finished and not self.sleeping

    @property
    def runtime(self) -> datetime.timedelta:
        return _now(self.basetime) - self.started

    @classmethod
    def from_scratch(
        cls, *, basetime: datetime.datetime, purpose: str | None = None
    ) -> HandlerState:
        return cls(active=True, basetime=basetime, started=_now(basetime), purpose=purpose)

    @classmethod
    def from_storage(
        cls, __d: progress.ProgressRecord, *, basetime: datetime.datetime
    ) -> HandlerState:
        filled: dict[str, Any]
        filled = {name: __d.get(name) or empty for name, empty in _EMPTY_FIELDS.items()}
        return cls(
            active=False,
            basetime=basetime,
            started=_moment(__d.get("started")) or _now(basetime),
            stopped=_moment(__d.get("stopped")),
            delayed=_moment(__d.get("delayed")),
            message=__d.get("message"),
            _origin=__d,
            **filled,
        )

    def for_storage(self) -> progress.ProgressRecord:
        """Make the record of this state; the order of its keys is part of the format."""
        return progress.ProgressRecord(
            started=format_iso8601(self.started),
            stopped=format_iso8601(self.stopped),
            delayed=format_iso8601(self.delayed),
            purpose=None if self.purpose is None else str(self.purpose),
            retries=None if self.retries is None else int(self.retries),
            success=None if self.success is None else bool(self.success),
            failure=None if self.failure is None else bool(self.failure),
            message=None if self.message is None else str(self.message),
            subrefs=sorted(self.subrefs) or None,
        )

    def as_in_storage(self) -> dict[str, Any]:
        """Make the record as the cluster keeps it: without nulls."""
        return {key: value for key, value in self.for_storage().items() if value is not None}

    def as_active(self) -> HandlerState:
        return dataclasses.replace(self, active=True)

    def with_purpose(self, purpose: str | None) -> HandlerState:
        return dataclasses.replace(self, purpose=purpose)

    def with_outcome(self, outcome: execution.Outcome) -> HandlerState:
        now = _now(self.basetime)
        failed = outcome.exception is not None
        return dataclasses.replace(
            self,
            stopped=self.stopped or (now if outcome.final else None),
            delayed=None if outcome.delay is None else now + _seconds(outcome.delay),
            success=bool(outcome.final and not failed),
            failure=bool(outcome.final and failed),
            retries=(self.retries or 0) + 1,
            message=str(outcome.exception) if failed else None,
            subrefs=sorted({*self.subrefs, *outcome.subrefs}),
        )


class StateCounters(NamedTuple):
    """How many handlers succeeded, failed, and are left."""

    success: int
    failure: int
    running: int


def _count(states: Collection[HandlerState]) -> StateCounters:
    return StateCounters(
        success=sum(1 for state in states if state.success),
        failure=sum(1 for state in states if state.failure),
        running=sum(1 for state in states if not state.finished),
    )


class State(execution.State):
    """The states of all handlers of an object; it never changes, new ones are made."""

    def __init__(
        self,
        __src: Mapping[ids.HandlerId, HandlerState],
        *,
        basetime: datetime.datetime,
        purpose: str | None = None,
    ) -> None:
        super().__init__()
        self._states = dict(__src)
        self.purpose = purpose
        self.basetime = basetime

    @classmethod
    def from_scratch(cls) -> State:
        return cls({}, basetime=_get_basetime())

    @classmethod
    def from_storage(
        cls,
        *,
        body: bodies.Body,
        storage: progress.ProgressStorage,
        handlers: Iterable[execution.Handler],
    ) -> State:
        basetime = _get_basetime()
        states: dict[ids.HandlerId, HandlerState] = {}
        for key in dict.fromkeys(handler.id for handler in handlers):
            record = storage.fetch(key=key, body=body)
            if record is not None:
                states[key] = HandlerState.from_storage(record, basetime=basetime)
        return cls(states, basetime=basetime)

    def _with(self, states: Mapping[ids.HandlerId, HandlerState]) -> State:
        return type(self)(states, basetime=self.basetime, purpose=self.purpose)

    def with_purpose(
        self, purpose: str | None, handlers: Iterable[execution.Handler] = ()
    ) -> State:
        states = dict(self._states)
        for handler in handlers:
            states[handler.id] = states[handler.id].with_purpose(purpose)
        return type(self)(states, basetime=self.basetime, purpose=purpose)

    def with_handlers(self, handlers: Iterable[execution.Handler]) -> State:
        states = dict(self._states)
        for handler in handlers:
            known = states.get(handler.id)
            if known is not None:
                states[handler.id] = known.as_active()
            else:
                states[handler.id] = HandlerState.from_scratch(
                    basetime=self.basetime, purpose=self.purpose
                )
        return self._with(states)

    def with_outcomes(self, outcomes: Mapping[ids.HandlerId, execution.Outcome]) -> State:
        unknown = [key for key in outcomes if key not in self._states]
        if unknown:
            raise RuntimeError(f"Unexpected outcomes for unknown handlers: {unknown!r}")
        states = dict(self._states)
        for key, outcome in outcomes.items():
            states[key] = states[key].with_outcome(outcome)
        return self._with(states)

    def without_successes(self) -> State:
        left = {key: state for key, state in self._states.items() if not state.success}
        return type(self)(left, basetime=self.basetime)

    def store(
        self, body: bodies.Body, patch: patches.Patch, storage: progress.ProgressStorage
    ) -> None:
        """Store those states that differ from their records."""
        for key, state in self._states.items():
            if state.as_in_storage() != state._origin:
                storage.store(key=key, record=state.for_storage(), body=body, patch=patch)
        storage.flush()

    def purge(
        self,
        *,
        body: bodies.Body,
        patch: patches.Patch,
        storage: progress.ProgressStorage,
        handlers: Iterable[execution.Handler],
    ) -> None:
        """Remove the records of the handlers, of other loaded states, and of sub-handlers."""
        keys = dict.fromkeys(handler.id for handler in handlers)
        for key, state in self._states.items():
            keys.setdefault(key)
            for subref in state.subrefs:
                keys.setdefault(subref)
        for key in keys:
            storage.purge(key=key, body=body, patch=patch)
        storage.flush()

    def __getitem__(self, item: ids.HandlerId) -> HandlerState:
        return self._states[item]

    def __iter__(self) -> Iterator[ids.HandlerId]:
        yield from self._states

    def __len__(self) -> int:
        return len(self._states)

    @property
    def done(self) -> bool:
        return all(state.finished for state in self._states.values() if state.active)

    @property
    def extras(self) -> dict[str, StateCounters]:
        """The counters of the states that were made for other purposes."""
        groups: dict[str, list[HandlerState]] = {}
        for state in self._states.values():
            if state.purpose is not None and state.purpose != self.purpose:
                groups.setdefault(state.purpose, []).append(state)
        return {purpose: _count(states) for purpose, states in groups.items()}

    @property
    def counts(self) -> StateCounters:
        own = (None, self.purpose)
        every = self._states.values()
        return _count([s for s in every if self.purpose is None or s.purpose in own])

    @property
    def delay(self) -> float | None:
        return min(self.delays, default=None)

    @property
    def delays(self) -> Collection[float]:
        """Seconds until the next attempts of unfinished handlers."""
        now = _now(self.basetime)
        return [
            max(0.0, (state.delayed - now).total_seconds()) if state.delayed else 0
            for state in self._states.values()
            if state.active and not state.finished
        ]


_EMPTY_FIELDS: Mapping[str, Any] = {
    "purpose": None,
    "retries": 0,
    "success": False,
    "failure": False,
    "subrefs": (),
}
"""What absent or empty fields of a record mean."""


def deliver_results(
    *, outcomes: Mapping[ids.HandlerId, execution.Outcome], patch: patches.Patch
) -> None:
    """Put the results of handlers into the status."""
    for key, outcome in outcomes.items():
        if outcome.exception is not None or outcome.result is None:
            continue
        if isinstance(outcome.result, collections.abc.Mapping):
            patch.setdefault("status", {}).setdefault(key, {}).update(outcome.result)
        else:
            patch.setdefault("status", {})[key] = copy.deepcopy(outcome.result)


@overload
def format_iso8601(val: None) -> None: ...


@overload
def format_iso8601(val: datetime.datetime) -> str: ...


def format_iso8601(val: datetime.datetime | None) -> str | None:
    """Write a moment with exactly six digits of the second."""
    return None if val is None else val.isoformat(timespec="microseconds")


@overload
def parse_iso8601(val: None) -> None: ...


@overload
def parse_iso8601(val: str) -> datetime.datetime: ...


def parse_iso8601(val: str | None) -> datetime.datetime | None:
    """Read a moment; with or without an offset."""
    if val is None:
        return None
    text = val[:-1] + "+00:00" if val.endswith(("Z", "z")) else val
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        import iso8601  # slow to import; Python before 3.11 needs it for unusual notations

        unusual: datetime.datetime = iso8601.parse_date(val, default_timezone=None)
        return unusual


def _moment(val: str | None) -> datetime.datetime | None:
    """Read a moment of a record; without an offset it is in UTC, as old releases wrote it."""
    parsed = None if val is None else parse_iso8601(val)
    if parsed is None or parsed.tzinfo is not None:
        return parsed
    return parsed.replace(tzinfo=datetime.timezone.utc)
