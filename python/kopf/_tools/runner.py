"""An operator in a thread of a test."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import types
from typing import Any, Literal, cast

import click.testing

from kopf import cli
from kopf._handlers import registries
from kopf._settings import configuration

_ExcInfo = tuple[type[BaseException], BaseException, types.TracebackType]


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
        self._thread.join(timeout=self.timeout)
        if self._thread.is_alive():
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
            registry=self.registry,
            settings=self.settings,
            stop_flag=self._stop,
            loop=loop,
        )
        try:
            runner = click.testing.CliRunner()
            result = runner.invoke(cli.main, *self.args, **self.kwargs, obj=controls)
        except BaseException as e:
            self._future.set_exception(e)
        else:
            self._future.set_result(result)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    @property
    def future(self) -> concurrent.futures.Future[click.testing.Result]:
        return self._future

    @property
    def output(self) -> str:
        return self.future.result().output

    @property
    def stdout(self) -> str:
        return self.future.result().stdout

    @property
    def stdout_bytes(self) -> bytes:
        return self.future.result().stdout_bytes

    @property
    def stderr(self) -> str:
        return self.future.result().stderr

    @property
    def stderr_bytes(self) -> bytes:
        return self.future.result().stderr_bytes or b""

    @property
    def exit_code(self) -> int:
        return self.future.result().exit_code

    @property
    def exception(self) -> BaseException:
        return cast(BaseException, self.future.result().exception)

    @property
    def exc_info(self) -> _ExcInfo:
        return cast(_ExcInfo, self.future.result().exc_info)
