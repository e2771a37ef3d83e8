"""An operator in a thread of a test."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import threading
import types
from typing import Any, Generic, Literal, TypeVar, cast

import click.testing

from kopf import cli
from kopf._handlers import registries
from kopf._settings import configuration

_T = TypeVar("_T")
_ExcInfo = tuple[type[BaseException], BaseException, types.TracebackType]


class _OfResult(Generic[_T]):
    """An attribute of the runner that has the same name in the result of the command."""

    def __init__(self, default: Any = None) -> None:
        self._default = default

    def __set_name__(self, owner: type[KopfRunner], name: str) -> None:
        self._name = name

    def __get__(self, runner: KopfRunner | None, owner: type[KopfRunner]) -> _T:
        if runner is None:
            return self  # type: ignore[return-value]
        value = getattr(runner.future.result(), self._name)
        return cast(_T, self._default if value is None else value)

    def __set__(self, runner: KopfRunner, value: _T) -> None:
        raise AttributeError(f"{self._name} is read-only")


class KopfRunner(contextlib.AbstractContextManager["KopfRunner"]):
    """Runs a command of ``kopf`` in a thread while the block of ``with`` runs.

    All arguments go to ``click.testing.CliRunner.invoke()``. The results are there afterwards.
    """

    def __init__(
        self,
        *args: Any,
        reraise: bool = True,
        timeout: float | None = None,
        registry: registries.OperatorRegistry | None = None,
        settings: configuration.OperatorSettings | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.args = args
        self.kwargs = kwargs
        self.reraise = reraise
        self.timeout = timeout
        self.registry = registry
        self.settings = settings
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._target)
        self._future: concurrent.futures.Future[click.testing.Result]
        self._future = concurrent.futures.Future()

    def __enter__(self) -> KopfRunner:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: types.TracebackType | None,
    ) -> Literal[False]:
        self._stop.set()
        thread = self._thread
        thread.join(self.timeout)
        if thread.is_alive():
            raise Exception("The operator didn't stop, still running.")
        error = self._future.exception()
        if error is None and self.reraise:
            error = self._future.result().exception
        if error is not None and exc_val is None:
            raise error
        if error is not None:
            raise error from exc_val
        return False

    def _target(self) -> None:
        """Run the command in a loop of this thread."""
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        self._ready.set()
        controls = cli.CLIControls(
            stop_flag=self._stop, loop=loop, registry=self.registry, settings=self.settings
        )
        invoke = functools.partial(click.testing.CliRunner().invoke, cli.main, *self.args)
        try:
            self._future.set_result(invoke(**self.kwargs, obj=controls))
        except BaseException as e:
            self._future.set_exception(e)
        finally:
            for closing in (loop.shutdown_asyncgens, loop.shutdown_default_executor):
                loop.run_until_complete(closing())
            loop.close()

    @property
    def future(self) -> concurrent.futures.Future[click.testing.Result]:
        """The result of the command as a future."""
        return self._future

    # The parts of the result; all of them wait for the end of the command.
    output = _OfResult[str]()
    stdout = _OfResult[str]()
    stderr = _OfResult[str]()
    stdout_bytes = _OfResult[bytes]()
    stderr_bytes = _OfResult[bytes](default=b"")
    exit_code = _OfResult[int]()
    exception = _OfResult[BaseException]()
    exc_info = _OfResult[_ExcInfo]()
