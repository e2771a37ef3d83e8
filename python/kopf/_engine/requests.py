"""What operators asked the server for, to be counted and looked at."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

_BODY_MAX = 200
_READING = {"get", "list", "watch"}


@dataclasses.dataclass(frozen=True)
class LoggedRequest:
    """A request about objects."""

    number: int
    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    namespace: str
    name: str
    path: str
    content_type: str
    body: str
    status: int

    @property
    def json(self) -> Any:
        """The body as data; none if there is no body."""
        return json.loads(self.body) if self.body else None

    def __str__(self) -> str:
        parts = (self.namespace, self.resource, self.name, self.subresource)
        place = "/".join(part for part in parts if part)
        body = self.body[:_BODY_MAX] + ("..." if len(self.body) > _BODY_MAX else "")
        return f"{self.verb} {place} -> {self.status} {body}".rstrip()


class Requests(Sequence[LoggedRequest]):
    """Requests about objects, oldest first; the methods narrow them down.

    >>> world.requests().patches().on("kopfexamples").assert_count(1)
    """

    def __init__(self, requests: Iterable[LoggedRequest]) -> None:
        super().__init__()
        self._requests = tuple(requests)

    @overload
    def __getitem__(self, index: int) -> LoggedRequest: ...
    @overload
    def __getitem__(self, index: slice) -> Requests: ...
    def __getitem__(self, index: int | slice) -> LoggedRequest | Requests:
        found = self._requests[index]
        return Requests(found) if isinstance(found, tuple) else found

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(self._requests)

    def __str__(self) -> str:
        return "\n".join(f"  {request}" for request in self) or "  (none)"

    __repr__ = __str__

    def filter(self, wanted: Callable[[LoggedRequest], bool]) -> Requests:
        """Those that a function accepts."""
        return Requests(filter(wanted, self))

    def verb(self, verb: str) -> Requests:
        return self.filter(lambda request: request.verb == verb)

    def patches(self) -> Requests:
        """The patches: both merge patches and applied configurations."""
        return self.verb("patch")

    def creates(self) -> Requests:
        return self.verb("create")

    def deletes(self) -> Requests:
        return self.verb("delete")

    def lists(self) -> Requests:
        return self.verb("list")

    def watches(self) -> Requests:
        return self.verb("watch")

    def writes(self) -> Requests:
        """Everything that changes something."""
        return self.filter(lambda request: request.verb not in _READING)

    def on(self, resource: str) -> Requests:
        """Those about a resource, as ``plural`` or ``plural.group``."""
        plural, dot, group = resource.partition(".")
        return self.filter(
            lambda request: request.resource == plural and (not dot or request.group == group)
        )

    def through(self, subresource: str) -> Requests:
        """Those through a subresource, such as ``status``; empty means the main resource."""
        return self.filter(lambda request: request.subresource == subresource)

    def named(self, name: str) -> Requests:
        return self.filter(lambda request: request.name == name)

    def in_namespace(self, namespace: str) -> Requests:
        return self.filter(lambda request: request.namespace == namespace)

    def answered(self, status: int) -> Requests:
        """Those that were answered with this HTTP status."""
        return self.filter(lambda request: request.status == status)

    def assert_count(self, expected: int) -> None:
        """Fail the test unless there are exactly so many, and tell which there are."""
        found = len(self)
        assert found == expected, f"expected {expected} requests, not {found}:\n{self}"

    def assert_none(self) -> None:
        """Fail the test if there are any, and tell which."""
        self.assert_count(0)
