"""Faults in a few words: which requests of the operator get into which trouble.

>>> on("kopfexamples").patches().status(503).times(2)
>>> on("pods").watches().cut_after(3)

Requests of the test itself are never troubled.
"""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Fault:
    """Trouble for requests of operators."""

    requests: On
    trouble: Any
    skipped: int | None = None
    limit: int | None = None

    def after(self, count: int) -> Fault:
        """Lets the first requests pass."""
        return dataclasses.replace(self, skipped=count)

    def times(self, count: int) -> Fault:
        """Stops after so many requests."""
        return dataclasses.replace(self, limit=count)

    def describe(self) -> dict[str, Any]:
        """Describe it for the server."""
        described = dataclasses.asdict(self.requests)
        return described | {"trouble": self.trouble, "after": self.skipped, "times": self.limit}


@dataclasses.dataclass(frozen=True)
class On:
    """Which requests of operators; every part that is named must match."""

    resource: str | None = None
    verbs: tuple[str, ...] = ()
    name: str | None = None
    namespace: str | None = None
    subresource: str | None = None

    def verb(self, verb: str) -> On:
        """Those with this verb; calling it again adds another verb."""
        return dataclasses.replace(self, verbs=(*self.verbs, verb))

    def patches(self) -> On:
        return self.verb("patch")

    def creates(self) -> On:
        return self.verb("create")

    def deletes(self) -> On:
        return self.verb("delete")

    def lists(self) -> On:
        return self.verb("list")

    def watches(self) -> On:
        return self.verb("watch")

    def named(self, name: str) -> On:
        """Those about the object with this name."""
        return dataclasses.replace(self, name=name)

    def in_namespace(self, namespace: str) -> On:
        return dataclasses.replace(self, namespace=namespace)

    def through(self, subresource: str) -> On:
        """Those through a subresource, such as ``status``."""
        return dataclasses.replace(self, subresource=subresource)

    def status(self, code: int) -> Fault:
        """They are answered with this HTTP status, and nothing is done."""
        return Fault(self, {"status": code})

    def too_many(self, retry_after: float) -> Fault:
        """They get 429 with a time in seconds after which they may be sent again."""
        return Fault(self, {"too_many": retry_after})

    def slow(self, latency: float) -> Fault:
        """Their answers take this much longer, in seconds of virtual time."""
        return Fault(self, {"slow": latency})

    def expired(self) -> Fault:
        """The version that they ask for is too old."""
        return Fault(self, "expired")

    def cut_after(self, events: int) -> Fault:
        """Watches end after this many events, without a word."""
        return Fault(self, {"cut_after": events})

    def frozen_after(self, events: int) -> Fault:
        """Watches go silent after this many events, but stay open."""
        return Fault(self, {"frozen_after": events})

    def doubled(self) -> Fault:
        """Watches tell every event twice."""
        return Fault(self, "doubled")

    def delayed(self, delay: float) -> Fault:
        """Watches tell every event later, by so many seconds."""
        return Fault(self, {"delayed": delay})

    def reordered(self) -> Fault:
        """Watches swap neighbouring events."""
        return Fault(self, "reordered")


def on(resource: str) -> On:
    """The operator's requests about a resource, as ``plural`` or ``plural.group``."""
    return On(resource=resource)


def anywhere() -> On:
    """All requests of the operator about objects."""
    return On()
