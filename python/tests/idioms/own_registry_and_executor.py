"""An operator as a class with its own registry, settings and executor, started by ``kopf.run``."""

import concurrent.futures
import functools
import threading
import time

from kopf._cogs.structs.bodies import Body
from kopf._cogs.structs.diffs import Diff, DiffOperation
from kopf._core.actions.execution import PermanentError, TemporaryError
from kopf._core.intents.registries import OperatorRegistry

import kopf

assert PermanentError is kopf.PermanentError and TemporaryError is kopf.TemporaryError


def timed(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        started = time.monotonic()
        try:
            return fn(*args, **kwargs)
        finally:
            kwargs["logger"].info(f"{fn.__name__} took {time.monotonic() - started >= 0}")

    return wrapper


class Controller:
    def __init__(self, registry: OperatorRegistry, kind: str) -> None:
        self.kind = kind
        self.lock = threading.Lock()
        self.registry = registry
        kopf.on.create(kind, registry=registry)(self.create)
        kopf.on.update(kind, registry=registry, id="changed")(self.update)
        kopf.on.create(kind, registry=registry, id="part")(functools.partial(partial, "given"))

    @timed
    def create(self, body: Body, spec, **_):
        with self.lock:
            return {"thread": threading.current_thread().name.rpartition("_")[0]}

    @timed
    def update(self, diff: Diff, **_):
        return [str(item.op) for item in diff if item.op == DiffOperation.CHANGE]


def partial(argument, name, **_):
    return f"{argument} {name}"


if __name__ == "__main__":
    registry = OperatorRegistry()
    Controller(registry, "volumes")

    @kopf.on.login(registry=registry)
    def login(**kwargs):
        return kopf.login_with_kubeconfig(**kwargs)

    settings = kopf.OperatorSettings()
    settings.execution.executor = concurrent.futures.ThreadPoolExecutor(
        max_workers=2, thread_name_prefix="mine"
    )
    settings.execution.max_workers = 3
    settings.posting.enabled = False
    kopf.run(registry=registry, settings=settings, clusterwide=True, standalone=True)
