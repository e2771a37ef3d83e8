"""Worlds of tests: a cluster and its operators, with a virtual clock."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import datetime
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kopf._engine.cluster import RequestError, describe_wanted, request
from kopf._engine.faults import Fault
from kopf._engine.requests import LoggedRequest, Requests
from kopf._handlers import registries

if TYPE_CHECKING:
    from kopf import _native
    from kopf._settings import configuration

_PATIENCE = 600.0
_ENDING = 10.0
_FIRST_STEP, _LAST_STEP = 0.01, 5.0
_MERGE = "application/merge-patch+json"

_current: contextvars.ContextVar[_native.World | None] = contextvars.ContextVar(
    "kopf_world", default=None
)


def current() -> _native.World | None:
    """Get the world in which operators are being started, if any."""
    return _current.get()


class World:
    """A cluster of one test, with a clock of its own.

    Time is virtual for the server and for the engine: retries, timers, timeouts. It passes only in
    :meth:`advance`, :meth:`settled` and :meth:`until`, and stands still while a handler runs. What
    handlers do themselves, such as ``asyncio.sleep()``, takes real time.
    """

    def __init__(self) -> None:
        super().__init__()
        from kopf import _native

        self._native = _native.World()

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the world with everything in it."""
        self._native.stop()

    @contextlib.asynccontextmanager
    async def operator(
        self,
        *,
        registry: registries.OperatorRegistry | None = None,
        settings: configuration.OperatorSettings | None = None,
        **options: Any,
    ) -> AsyncIterator[None]:
        """Run an operator in this world: ``async with world.operator(): ...``.

        The resources of its handlers are defined before. It watches when the block begins. Keywords
        go to ``kopf.operator()``.
        """
        from kopf._run import running

        registry = registries.get_default_registry() if registry is None else registry
        await self.install(registry)
        options.setdefault("clusterwide", not options.get("namespaces"))
        options.setdefault("standalone", True)
        stop_flag, ready_flag = asyncio.Event(), asyncio.Event()
        token = _current.set(self._native)
        try:
            operator = asyncio.create_task(
                running.operator(
                    registry=registry,
                    settings=settings,
                    stop_flag=stop_flag,
                    ready_flag=ready_flag,
                    **options,
                )
            )
        finally:
            _current.reset(token)
        waiting = asyncio.create_task(ready_flag.wait())
        await asyncio.wait({operator, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if operator.done():
            operator.result()
        try:
            yield
        finally:
            stop_flag.set()
            await _until_ended(operator)

    async def install(
        self,
        registry: registries.OperatorRegistry | None = None,
        documents: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """Define the resources of the handlers, then load objects."""
        await self._apart(self._native.install, *describe_wanted(registry, documents))

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
    ) -> Any:
        """Make a request as the administrator; errors are raised as ``RequestError``."""
        return request(self._native, method, path, body, content_type)

    def objects(self, resource: str | type, *, namespace: str | None = "default") -> Objects:
        """The objects of a resource: ``plural.version.group``, ``plural.version``, or a class."""
        return Objects(self, resource, namespace)

    def events(self, *, namespace: str = "default") -> list[dict[str, Any]]:
        """The Kubernetes events that were posted in a namespace, oldest first."""
        found = self.objects("events.v1", namespace=namespace).list()
        return sorted(found, key=lambda event: int(event["metadata"]["resourceVersion"]))

    async def settled(self) -> None:
        """Wait until there is nothing to do now: no handler, no controller, no request."""
        for _ in range(2):
            await self._apart(self._native.settled)
            await asyncio.sleep(0)  # daemons may have begun

    async def advance(self, time: float | datetime.timedelta) -> None:
        """Let virtual time pass, with everything that happens in it."""
        seconds = time.total_seconds() if isinstance(time, datetime.timedelta) else time
        await self._apart(self._native.advance, float(seconds))
        await self.settled()

    async def until(
        self, condition: Callable[[], Any | Awaitable[Any]], *, patience: float = _PATIENCE
    ) -> Any:
        """Let time pass until a condition holds; get its value.

        ``RequestError`` with the code 404 counts as a condition that does not hold.
        """
        deadline = self._native.now() + patience
        step = _FIRST_STEP
        while True:
            await self.settled()
            value = await _value_of(condition)
            if value:
                return value
            if self._native.now() >= deadline:
                raise AssertionError(
                    f"timed out after {patience:g} seconds of virtual time: "
                    f"{_text_of(condition)}; last seen: {value!r}; requests:\n{self.requests()}"
                )
            await self._apart(self._native.advance, step)
            step = min(step * 2, _LAST_STEP)

    @property
    def now(self) -> datetime.datetime:
        """The time of the world."""
        return datetime.datetime.fromtimestamp(self._native.now(), datetime.timezone.utc)

    async def in_real_time(self) -> None:
        """Let real time pass from now on, for what has sockets, such as webhooks."""
        await self._apart(self._native.in_real_time)

    def fault(self, fault: Fault) -> None:
        """Make requests of operators go wrong: ``world.fault(fault.on("pods").status(503))``."""
        self._native.fault(json.dumps(fault.describe()))

    def heal(self) -> None:
        """End all faults."""
        self._native.heal()

    def requests(self) -> Requests:
        """The requests of operators about objects, oldest first."""
        return Requests(LoggedRequest(**fields) for fields in json.loads(self._native.requests()))

    def forget_requests(self) -> None:
        """Forget the requests so far."""
        self._native.forget_requests()

    @staticmethod
    async def _apart(fn: Callable[..., Any], *args: Any) -> None:
        """Wait in a thread, so that the event loop can run handlers in the meantime."""
        await asyncio.get_running_loop().run_in_executor(None, fn, *args)


async def _until_ended(operator: asyncio.Task[None]) -> None:
    """Wait for the end of an operator, in real time: its handlers take real time, too."""
    await asyncio.wait({operator}, timeout=_ENDING)
    if operator.done():
        return operator.result()
    while not operator.done():
        operator.cancel()
        await asyncio.wait({operator}, timeout=1.0)
    raise AssertionError(f"a handler did not end in {_ENDING:g} seconds after the operator's stop")


async def _value_of(condition: Callable[[], Any]) -> Any:
    try:
        value = condition()
        return await value if inspect.isawaitable(value) else value
    except RequestError as e:
        if e.code != 404:
            raise
        return None


def _text_of(condition: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(condition).strip()
    except (OSError, TypeError):
        return repr(condition)


class Objects:
    """The objects of one resource in one namespace, or in the cluster."""

    def __init__(self, world: World, resource: str | type, namespace: str | None) -> None:
        super().__init__()
        self._world = world
        if isinstance(resource, type):
            from kopf._models.resources import resource_of

            declared = resource_of(resource)
            plural, version, group = declared.plural, declared.version, declared.group
        else:
            plural, _, rest = resource.partition(".")
            version, _, group = rest.partition(".")
        if not version:
            raise ValueError(f"name the version, too: plural.version.group, not {resource!r}")
        self._plural = plural
        self._api_version = f"{group}/{version}" if group else version
        self._root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        self._namespace = namespace

    def _path(self, name: str = "") -> str:
        place = f"/namespaces/{self._namespace}" if self._namespace and self._is_namespaced else ""
        return f"{self._root}{place}/{self._plural}" + (f"/{name}" if name else "")

    @property
    def _description(self) -> Mapping[str, Any]:
        found = self._world.request("GET", self._root)["resources"]
        described = next((it for it in found if it["name"] == self._plural), None)
        if described is None:
            raise LookupError(f"the server has no resource {self._plural} in {self._api_version}")
        return dict(described)

    @property
    def _is_namespaced(self) -> bool:
        return bool(self._description["namespaced"])

    def create(self, manifest: Mapping[str, Any] | str, **fields: Any) -> dict[str, Any]:
        """Create an object from a manifest, or from a name and sections such as ``spec={...}``."""
        body: dict[str, Any] = {"apiVersion": self._api_version, "kind": self._description["kind"]}
        body |= {"metadata": {"name": manifest}} if isinstance(manifest, str) else dict(manifest)
        created: dict[str, Any] = self._world.request("POST", self._path(), body | fields)
        return created

    def get(self, name: str) -> dict[str, Any]:
        """Get an object; if there is none, ``RequestError`` is raised."""
        found: dict[str, Any] = self._world.request("GET", self._path(name))
        return found

    def list(self) -> list[dict[str, Any]]:
        """Get all objects."""
        found: list[dict[str, Any]] = self._world.request("GET", self._path())["items"]
        return found

    def patch(self, name: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Change an object with a merge patch."""
        path = self._path(name)
        changed: dict[str, Any] = self._world.request("PATCH", path, patch, content_type=_MERGE)
        return changed

    def delete(self, name: str) -> None:
        """Ask for the deletion of an object."""
        self._world.request("DELETE", self._path(name))

    def names(self) -> Iterator[str]:
        """The names of all objects."""
        return (str(found["metadata"]["name"]) for found in self.list())

    async def until(
        self, name: str, condition: Callable[[dict[str, Any]], Any], *, patience: float = _PATIENCE
    ) -> dict[str, Any]:
        """Wait until an object exists and a condition holds for it; get the object."""
        seen: list[dict[str, Any]] = []

        def look() -> Any:
            seen.append(self.get(name))
            return condition(seen[-1])

        try:
            await self._world.until(look, patience=patience)
        except AssertionError as e:
            last = seen[-1] if seen else None
            raise AssertionError(f"{_text_of(condition)}; {name} is now: {last}; {e}") from None
        return seen[-1]

    async def until_gone(self, name: str, *, patience: float = _PATIENCE) -> None:
        """Wait until an object does not exist."""
        await self._world.until(lambda: name not in set(self.names()), patience=patience)
