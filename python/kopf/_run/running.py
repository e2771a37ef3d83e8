"""Running of operators: in a process of their own, in a loop, or as tasks of an application."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Collection, Coroutine
from typing import Any

from kopf._clients import auth
from kopf._handlers import execution, lifecycles, registries
from kopf._run import flags, posting
from kopf._run import tasks as aiotasks
from kopf._run.identity import Identity, detect_own_id
from kopf._settings import configuration
from kopf._structs import credentials, ephemera, references

_MODULE_OF_KOPF = "kopf._core.reactor.running"
logger = logging.getLogger(_MODULE_OF_KOPF)

_HUNG_TIMEOUT = 5.0
_NO_SCOPE = (
    "Absence of either namespaces or cluster-wide flag will become an error soon."
    " For now, switching to the cluster-wide mode for backward compatibility."
)


def run(
    *,
    loop: asyncio.AbstractEventLoop | None = None,
    lifecycle: execution.LifeCycleFn | None = None,
    indexers: Any | None = None,
    registry: registries.OperatorRegistry | None = None,
    settings: configuration.OperatorSettings | None = None,
    memories: Any | None = None,
    insights: Any | None = None,
    identity: Identity | None = None,
    standalone: bool | None = None,
    priority: int | None = None,
    peering_name: str | None = None,
    liveness_endpoint: str | None = None,
    clusterwide: bool = False,
    namespaces: Collection[references.NamespacePattern] = (),
    namespace: references.NamespacePattern | None = None,
    stop_flag: flags.Flag | None = None,
    ready_flag: flags.Flag | None = None,
    vault: credentials.Vault | None = None,
    memo: object | None = None,
    _command: Coroutine[None, None, None] | None = None,
) -> None:
    """Run an operator until it is stopped: in the given loop, or in a new one."""
    options = {name: value for name, value in locals().items() if name != "loop"}
    execute = asyncio.run if loop is None else loop.run_until_complete
    with contextlib.suppress(asyncio.CancelledError):
        execute(operator(**options))


async def operator(
    *,
    lifecycle: execution.LifeCycleFn | None = None,
    indexers: Any | None = None,
    registry: registries.OperatorRegistry | None = None,
    settings: configuration.OperatorSettings | None = None,
    memories: Any | None = None,
    insights: Any | None = None,
    identity: Identity | None = None,
    standalone: bool | None = None,
    priority: int | None = None,
    peering_name: str | None = None,
    liveness_endpoint: str | None = None,
    clusterwide: bool = False,
    namespaces: Collection[references.NamespacePattern] = (),
    namespace: references.NamespacePattern | None = None,
    stop_flag: flags.Flag | None = None,
    ready_flag: flags.Flag | None = None,
    vault: credentials.Vault | None = None,
    memo: object | None = None,
    _command: Coroutine[None, None, None] | None = None,
) -> None:
    """Run an operator in the running loop until it is stopped."""
    options = dict(locals())
    existing = await aiotasks.all_tasks()
    tasks = await spawn_tasks(**options)
    await run_tasks(tasks, ignored=existing)


async def spawn_tasks(
    *,
    lifecycle: execution.LifeCycleFn | None = None,
    indexers: Any | None = None,
    registry: registries.OperatorRegistry | None = None,
    settings: configuration.OperatorSettings | None = None,
    memories: Any | None = None,
    insights: Any | None = None,
    identity: Identity | None = None,
    standalone: bool | None = None,
    priority: int | None = None,
    peering_name: str | None = None,
    liveness_endpoint: str | None = None,
    clusterwide: bool = False,
    namespaces: Collection[references.NamespacePattern] = (),
    namespace: references.NamespacePattern | None = None,
    stop_flag: flags.Flag | None = None,
    ready_flag: flags.Flag | None = None,
    vault: credentials.Vault | None = None,
    memo: object | None = None,
    _command: Coroutine[None, None, None] | None = None,
) -> Collection[asyncio.Task[Any]]:
    """Start an operator as tasks of the running loop; wait for them with ``run_tasks()``."""
    clusterwide, namespaces = _scope(clusterwide, namespaces, namespace)
    own_settings = settings is None
    settings = configuration.OperatorSettings() if settings is None else settings
    given = {"name": peering_name, "standalone": standalone, "priority": priority}
    for option, value in given.items():
        if value is not None:
            setattr(settings.peering, option, value)
    settings.peering.mandatory |= peering_name is not None
    settings.peering.clusterwide = clusterwide
    posting.settings_var.set(settings)
    vault = credentials.Vault() if vault is None else vault
    auth.vault_var.set(vault)

    from kopf import _engine

    stopping = asyncio.Event()
    tasks = await _engine.spawn(
        lifecycle=lifecycles.get_default_lifecycle() if lifecycle is None else lifecycle,
        registry=registries.get_default_registry() if registry is None else registry,
        settings=settings,
        memories=memories,
        indexers=indexers,
        insights=insights,
        identity=detect_own_id(manual=False) if identity is None else identity,
        liveness_endpoint=liveness_endpoint,
        clusterwide=clusterwide,
        namespaces=namespaces,
        stop_flag=stopping,
        ready_flag=ready_flag,
        vault=vault,
        memo=ephemera.Memo() if memo is None else memo,
        _command=_command,
    )
    signalled: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()
    checker = asyncio.create_task(
        _check_stop_flags(signalled, stop_flag, stopping, settings), name="stop-flag checker"
    )
    for task in tasks:
        task.add_done_callback(lambda _: checker.cancel())
        if own_settings:
            shutdown = functools.partial(settings.execution.executor.shutdown, wait=False)
            task.add_done_callback(lambda _, shutdown=shutdown: shutdown())  # type: ignore[misc]
    _catch_signals(signalled)
    return tasks


def _scope(
    clusterwide: bool,
    namespaces: Collection[references.NamespacePattern],
    namespace: references.NamespacePattern | None,
) -> tuple[bool, Collection[references.NamespacePattern]]:
    """Check which namespaces are served."""
    if namespaces and namespace:
        raise TypeError("Either namespaces= or namespace= can be passed. Got both.")
    if namespace:
        _warn("namespace= is deprecated; use namespaces=[...]", DeprecationWarning)
        namespaces = [namespace]
    if clusterwide and namespaces:
        raise TypeError("The operator can be either cluster-wide or namespaced, not both.")
    if not clusterwide and not namespaces:
        _warn(_NO_SCOPE, FutureWarning)
        clusterwide = True
    return clusterwide, namespaces


def _warn(message: str, category: type[Warning]) -> None:
    """Warn under the name of Kopf's module: operators silence its warnings by this name."""
    line = sys._getframe(1).f_lineno
    registry = globals().setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, __file__, line, _MODULE_OF_KOPF, registry)


def _catch_signals(signalled: asyncio.Future[signal.Signals]) -> None:
    """Stop on SIGINT and SIGTERM; only the main thread gets them."""
    if threading.current_thread() is not threading.main_thread():
        logger.warning("OS signals are ignored: running not in the main thread.")
        return

    def received(number: signal.Signals) -> None:
        if not signalled.done():
            signalled.set_result(number)

    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGINT, received, signal.SIGINT)
        loop.add_signal_handler(signal.SIGTERM, received, signal.SIGTERM)
    except NotImplementedError:
        logger.warning("OS signals are ignored: can't add signal handler in Windows.")


async def _check_stop_flags(
    signalled: asyncio.Future[signal.Signals],
    stop_flag: flags.Flag | None,
    stopping: asyncio.Event,
    settings: configuration.OperatorSettings,
) -> None:
    """Wait for a signal or for the flag of the user, then stop the operator."""
    waited: list[asyncio.Future[Any]] = [signalled]
    if stop_flag is not None:
        waited.append(asyncio.ensure_future(flags.wait_flag(stop_flag)))
    killer: Callable[[], None] = lambda: None
    try:
        done, _ = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        result = done.pop().result()
        if isinstance(result, signal.Signals):
            logger.info(f"Signal {result.name!s} is received. Operator is stopping.")
        elif result is None:
            logger.info("Stop-flag is raised. Operator is stopping.")
        else:
            logger.info(f"Stop-flag is set to {result!r}. Operator is stopping.")
        stopping.set()
        if not flags.check_flag(stop_flag):
            killer = _kill_later(settings.process.ultimate_exiting_timeout)
        await asyncio.Event().wait()
    finally:
        killer()
        for future in waited[1:]:
            future.cancel()


def _kill_later(timeout: float | None) -> Callable[[], None]:
    """Kill this thread, and so the process, if it does not exit in time."""
    if timeout is None:
        return lambda: None
    thread = threading.get_ident()
    loop = asyncio.get_running_loop()
    timer = loop.call_later(timeout, signal.pthread_kill, thread, signal.SIGKILL)
    return timer.cancel


async def run_tasks(
    root_tasks: Collection[asyncio.Task[Any]],
    *,
    ignored: Collection[asyncio.Task[Any]] = frozenset(),
) -> None:
    """Wait until any of the root tasks ends, stop the others, and raise the first error.

    Other tasks that are not ignored have some time to end, then they are cancelled.
    """
    try:
        done, pending = await asyncio.wait(root_tasks, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        await _stop(root_tasks, "Root", "cancelling")
        await _stop(await aiotasks.all_tasks(ignored=ignored), "Hung", "cancelling")
        raise
    done |= await _stop(pending, "Root")
    hung = await aiotasks.all_tasks(ignored=ignored)
    if hung:
        try:
            ended, hung = await asyncio.wait(hung, timeout=_HUNG_TIMEOUT)
        except asyncio.CancelledError:
            await _stop(await aiotasks.all_tasks(ignored=ignored), "Hung", "cancelling")
            raise
        done |= ended
    done |= await _stop(hung, "Hung")
    for task in done:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


async def _stop(
    tasks: Collection[asyncio.Task[Any]], title: str, why: str = "finishing"
) -> set[asyncio.Task[Any]]:
    """Cancel tasks and wait for them."""
    if not tasks:
        logger.debug(f"{title} tasks stopping is skipped: no tasks given.")
        return set()
    for task in tasks:
        task.cancel()
    done, _ = await asyncio.wait(tasks)
    logger.debug(f"{title} tasks are stopped: {why} normally; tasks left: set()")
    return done
