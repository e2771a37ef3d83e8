"""The process of an operator: bad scripts, signals, exit codes, leaks, embedding."""

from __future__ import annotations

import asyncio
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from typing import Any

import pytest

import kopf
from kopf.testing import KopfRunner
from tests.operators import World, define

PATH = "/apis/kopf.dev/v1/namespaces/default/kopfexamples"
DEFINITION = define("kopf.dev", "KopfExample", "kopfexamples")


def example(name: str = "one", **fields: Any) -> dict[str, Any]:
    body = {"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": {"name": name}}
    return {**body, "spec": {}, **fields}


def script(directory: pathlib.Path, text: str) -> str:
    path = directory / "script.py"
    path.write_text("import kopf\n" + textwrap.dedent(text))
    return str(path)


def run_kopf(*args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kopf", *args],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **(env or {})},
    )


def test_a_syntax_error_is_shown_with_its_line(tmp_path: pathlib.Path) -> None:
    done = run_kopf("run", "-A", script(tmp_path, "def broken(:\n    pass\n"))
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr and "def broken(:" in done.stderr


def test_an_absent_script_is_an_error(tmp_path: pathlib.Path) -> None:
    done = run_kopf("run", "-A", str(tmp_path / "absent.py"))
    assert done.returncode == 1 and "absent.py" in done.stderr


def test_contradicting_options_are_a_usage_error(tmp_path: pathlib.Path) -> None:
    done = run_kopf("run", "-A", "-n", "ns", script(tmp_path, ""))
    assert done.returncode == 2
    assert "Either --namespace or --all-namespaces can be used, not both." in done.stderr


def test_no_cluster_at_all_is_an_error(tmp_path: pathlib.Path) -> None:
    code = """
        @kopf.on.login()
        def login(**_):
            return None
        """
    done = run_kopf("run", "-A", script(tmp_path, code), env={"KUBECONFIG": "/nowhere"})
    assert done.returncode == 1 and "LoginError" in done.stderr


def test_a_failed_startup_stops_the_operator(world: World, tmp_path: pathlib.Path) -> None:
    code = """
        @kopf.on.startup()
        def start(**_):
            raise kopf.PermanentError("no way")
        """
    kubeconfig = {"KUBECONFIG": str(world.kubeconfig)}
    done = run_kopf("run", "-A", script(tmp_path, code), env=kubeconfig)
    assert done.returncode == 1
    assert "Activity 'start' failed permanently: no way" in done.stderr
    assert "ActivityError" in done.stderr


def test_odd_handlers_do_not_harm_others(world: World, tmp_path: pathlib.Path) -> None:
    code = """
        @kopf.on.create('kopfexamples', retries=1)
        def wrong_signature():
            pass

        @kopf.on.create('kopfexamples')
        def unknown_kwarg(nonsense=5, **_):
            return nonsense

        @kopf.on.create('nothing.example.com')
        def unknown_resource(**_):
            pass

        @kopf.on.create('kopfexamples', retries=1)
        def not_serialisable(**_):
            return object()

        @kopf.on.create('kopfexamples')
        def good(**_):
            return 'good'
        """
    world.cluster.install(None, [DEFINITION, example()])
    world.start("-A", script(tmp_path, code))
    world.until(lambda: "good" in (world.get(f"{PATH}/one").get("status") or {}))
    world.says("wrong_signature() got an unexpected keyword argument")
    assert world.get(f"{PATH}/one")["status"]["unknown_kwarg"] == 5
    world.stop()


def test_a_failed_filter_concerns_its_object_only(world: World, tmp_path: pathlib.Path) -> None:
    code = """
        def check(name, **_):
            if name == 'bad':
                raise ValueError('filter boo')
            return True

        @kopf.on.create('kopfexamples', when=check)
        def fn(**_):
            return 'done'
        """
    world.cluster.install(None, [DEFINITION, example("bad"), example("one")])
    world.start("-A", script(tmp_path, code))
    world.until(lambda: world.get(f"{PATH}/one").get("status"))
    world.says("filter boo")
    world.stop()


def test_a_fork_in_a_handler_works(world: World, tmp_path: pathlib.Path) -> None:
    code = """
        import os, subprocess

        @kopf.on.create('kopfexamples')
        def fn(**_):
            pid = os.fork()
            if not pid:
                os._exit(7)
            _, status = os.waitpid(pid, 0)
            text = subprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout
            return {'child': os.waitstatus_to_exitcode(status), 'text': text}
        """
    world.cluster.install(None, [DEFINITION, example()])
    world.start("-A", script(tmp_path, code))
    found = world.until(lambda: world.get(f"{PATH}/one").get("status"))
    assert found == {"fn": {"child": 7, "text": "hi\n"}}
    world.stop()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("delay", [0.3, 0.8, 1.5])
def test_signals_stop_the_operator_at_any_moment(
    world: World, tmp_path: pathlib.Path, number: signal.Signals, delay: float
) -> None:
    code = """
        @kopf.daemon('kopfexamples')
        async def background(stopped, **_):
            await stopped.wait()

        @kopf.on.login()
        def login(**kwargs):
            print('ready', flush=True)
            return kopf.login_with_kubeconfig(**kwargs)
        """
    world.cluster.install(None, [DEFINITION, example()])
    world.start("-A", script(tmp_path, code))
    world.says("ready")
    time.sleep(delay - 0.3)
    (process,) = world.processes
    process.send_signal(number)
    assert process.wait(timeout=20) == 0, world.text()
    assert f"Signal {number.name} is received. Operator is stopping." in world.text()


def operator_of(world: World, registry: kopf.OperatorRegistry, **options: Any) -> Any:
    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return world.cluster.connection_info()

    return kopf.operator(registry=registry, clusterwide=True, **options)


def test_cleanup_waits_for_functions_in_threads(world: World, tmp_path: pathlib.Path) -> None:
    code = f"""
        import pathlib, time

        @kopf.on.create('kopfexamples')
        def busy(**_):
            print('note: begins')
            while not pathlib.Path({str(tmp_path / "go")!r}).exists():
                time.sleep(0.01)
            print('note: ends')

        @kopf.on.cleanup()
        def clean(**_):
            print('note: cleans')
        """
    world.cluster.install(None, [DEFINITION, example()])
    world.start("-A", "--standalone", script(tmp_path, code))
    world.says("note: begins")
    world.processes[0].send_signal(signal.SIGTERM)
    world.says("handlers that did not finish in time")
    (tmp_path / "go").touch()
    world.stop()
    assert world.text().index("note: ends") < world.text().index("note: cleans")


def test_warnings_are_silenced_by_the_names_of_modules_in_kopf() -> None:
    async def spawn() -> None:
        for task in await kopf.spawn_tasks(registry=kopf.OperatorRegistry()):
            task.cancel()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module="kopf._core.reactor.running")
        asyncio.run(spawn())
    assert not [w for w in caught if issubclass(w.category, FutureWarning)]


def test_operators_in_threads_stop_by_flags_and_leave_nothing(world: World) -> None:
    world.cluster.install(None, [DEFINITION, example()])
    seen: list[str] = []
    before = set(threading.enumerate())
    stops = [threading.Event() for _ in range(2)]

    def operate(index: int) -> None:
        registry = kopf.OperatorRegistry()

        @kopf.on.event("kopfexamples", registry=registry)
        def fn(name: str, **_: Any) -> None:
            seen.append(f"{index}:{name}")

        asyncio.run(operator_of(world, registry, stop_flag=stops[index]))

    threads = [threading.Thread(target=operate, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    world.until(lambda: {"0:one", "1:one"} <= set(seen))
    for stop in stops:
        stop.set()
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()
    world.until(lambda: set(threading.enumerate()) <= before)


def test_an_operator_in_a_running_loop_leaves_other_tasks_alone(world: World) -> None:
    world.cluster.install(None, [DEFINITION, example()])

    async def main() -> None:
        registry = kopf.OperatorRegistry()
        handled = asyncio.Event()

        @kopf.on.create("kopfexamples", registry=registry)
        async def fn(**_: Any) -> None:
            handled.set()

        other = asyncio.create_task(asyncio.Event().wait())
        await asyncio.sleep(0)
        stop = asyncio.Event()
        ready = asyncio.Event()
        task = asyncio.create_task(operator_of(world, registry, stop_flag=stop, ready_flag=ready))
        await asyncio.wait_for(ready.wait(), 20)
        await asyncio.wait_for(handled.wait(), 20)
        stop.set()
        await asyncio.wait_for(task, 20)
        assert not other.done()
        left = asyncio.all_tasks() - {other, asyncio.current_task()}
        assert not left
        other.cancel()

    asyncio.run(main())


def test_a_cancelled_operator_ends(world: World) -> None:
    async def main() -> None:
        ready = asyncio.Event()
        registry = kopf.OperatorRegistry()
        task = asyncio.create_task(operator_of(world, registry, ready_flag=ready))
        await asyncio.wait_for(ready.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 20)

    asyncio.run(main())


def test_contradicting_scopes_are_refused() -> None:
    with pytest.raises(TypeError):
        asyncio.run(kopf.operator(clusterwide=True, namespaces=["a"]))
    with pytest.raises(TypeError):
        asyncio.run(kopf.operator(namespaces=["a"], namespace="b"))


def test_runner_of_tests(
    world: World, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(world.kubeconfig))
    world.cluster.install(None, [DEFINITION])
    code = """
        @kopf.on.create('kopfexamples')
        def create_fn(**_):
            print('And here we are!')
            return 1
        """
    before = kopf.get_default_registry()
    try:
        with KopfRunner(
            ["run", "-A", "--verbose", script(tmp_path, code)],
            timeout=30,
            registry=kopf._handlers.registries.SmartOperatorRegistry(),
        ) as runner:
            world.cluster.request("POST", PATH, example())
            world.until(lambda: world.get(f"{PATH}/one").get("status"))
    finally:
        kopf.set_default_registry(before)
    assert runner.exit_code == 0 and runner.exception is None
    assert "And here we are!" in runner.output
    assert "[default/one] Creation is in progress:" in runner.output
