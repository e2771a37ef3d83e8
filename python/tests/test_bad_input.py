"""Bad scripts and bad handlers: an explanation as in Kopf or better; no panics, no hangs."""

from __future__ import annotations

import asyncio
import os
import pathlib
import subprocess
import sys
import textwrap
from typing import Any

import pytest

import kopf
from tests.operators import World, define

PATH = "/apis/kopf.dev/v1/namespaces/default/kopfexamples"
DEFINITION = define("kopf.dev", "KopfExample", "kopfexamples")


def example(name: str = "one") -> dict[str, Any]:
    meta = {"name": name}
    return {"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": meta, "spec": {}}


def start(world: World, directory: pathlib.Path, text: str) -> None:
    path = directory / "script.py"
    path.write_text("import kopf\n" + textwrap.dedent(text))
    world.cluster.install(None, [DEFINITION, example()])
    world.start("-A", "--standalone", str(path))


def status(world: World, key: str, name: str = "one") -> Any:
    def find() -> Any:
        found = (world.get(f"{PATH}/{name}") or {}).get("status") or {}
        return [found[key]] if key in found else None

    return world.until(find)[0]


@pytest.mark.parametrize(
    "content, expected",
    [
        ("def f(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError"),
        ("import absent_module", "No module named 'absent_module'"),
        ("import kopf\n@kopf.on.create()\ndef f(**_): ...", "TypeError"),
        ("import kopf\n@kopf.on.create('a', 'b', 'c', 'd')\ndef f(**_): ...", "TypeError"),
        ("import kopf\n@kopf.on.create('x', errors='nonsense')\ndef f(**_): ...", ""),
        ("import kopf\n@kopf.on.field('x')\ndef f(**_): ...", "field"),
        ("import kopf\n@kopf.on.create('x', field='a', value=1, old=2)\ndef f(**_): ...", ""),
        ("\x00", "null bytes"),
    ],
)
def test_a_bad_script_is_explained(tmp_path: pathlib.Path, content: str, expected: str) -> None:
    path = tmp_path / "script.py"
    path.write_text(content)
    environment = {**os.environ, "KUBECONFIG": str(tmp_path / "absent")}
    done = subprocess.run(
        [sys.executable, "-m", "kopf", "run", "-A", str(path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    assert expected in done.stderr
    assert "panicked" not in done.stderr


def test_an_unknown_resource_is_named(world: World, tmp_path: pathlib.Path) -> None:
    code = """
        @kopf.on.create('unknown.example.com')
        def unknown(**_): ...

        @kopf.on.create('kopfexamples')
        def good(**_):
            return 'good'
        """
    start(world, tmp_path, code)
    assert status(world, "good") == "good"
    world.says(
        "Unresolved resources cannot be served (try creating their CRDs): "
        "Selector(group='example.com', any_name='unknown')"
    )
    world.stop()


def test_a_patch_that_is_no_json_is_explained(world: World, tmp_path: pathlib.Path) -> None:
    code = """
        @kopf.on.create('kopfexamples')
        def bad(patch, **_):
            patch.status['moment'] = object()

        @kopf.on.create('kopfexamples')
        def failing(patch, **_):
            patch.status['moment'] = object()
            raise kopf.PermanentError('its own reason')

        @kopf.on.create('kopfexamples')
        def uncertain(patch, **_):
            patch.status['average'] = float('nan')
        """
    start(world, tmp_path, code)
    world.says("Handler 'bad' failed permanently: The patch of the handler cannot be used")
    world.says("Handler 'failing' has a patch that cannot be used: ")
    world.says("Handler 'failing' failed permanently: its own reason")
    world.says("Handler 'uncertain' failed permanently: The patch of the handler cannot be used: ")
    world.says("Creation is processed: 0 succeeded; 3 failed.")
    world.stop()


@pytest.mark.parametrize(
    "kind",
    [
        "object()",
        "{1, 2}",
        "b'bytes'",
        "{'a': object()}",
        "recursive",
        "float('nan')",
        "{'a': [float('-inf')]}",
    ],
)
def test_a_result_that_is_no_json_is_explained(
    world: World, tmp_path: pathlib.Path, kind: str
) -> None:
    code = f"""
        recursive = []
        recursive.append(recursive)

        @kopf.on.create('kopfexamples', labels={{'good': kopf.ABSENT}})
        def bad(**_):
            return {kind}

        @kopf.on.create('kopfexamples', labels={{'good': 'yes'}})
        def good(**_):
            return 'good'
        """
    start(world, tmp_path, code)
    world.says("bad")
    body = example("two")
    body["metadata"]["labels"] = {"good": "yes"}
    world.cluster.request("POST", PATH, body)
    assert status(world, "good", "two") == "good"
    world.says("The result of the handler cannot be used")
    assert "panicked" not in world.text()
    world.stop()


def test_processes_are_started_by_handlers(world: World, tmp_path: pathlib.Path) -> None:
    code = """
        import asyncio, multiprocessing, sys

        def work(queue):
            queue.put('from the child')

        @kopf.on.create('kopfexamples')
        def forks(**_):
            context = multiprocessing.get_context('fork')
            queue = context.Queue()
            process = context.Process(target=work, args=(queue,))
            process.start()
            text = queue.get(timeout=30)
            process.join(30)
            return {'ended': process.exitcode is not None, 'text': text}

        @kopf.on.create('kopfexamples')
        async def executes(**_):
            pipe = asyncio.subprocess.PIPE
            command = [sys.executable, '-c', 'print(5)']
            process = await asyncio.create_subprocess_exec(*command, stdout=pipe)
            output, _ = await process.communicate()
            return output.decode().strip()
        """
    start(world, tmp_path, code)
    # The code is 1 with any executor: the child of a thread cannot join this thread at its end.
    assert status(world, "forks") == {"ended": True, "text": "from the child"}
    assert status(world, "executes") == "5"
    world.stop()


@pytest.mark.parametrize("function", ["def", "async def"])
def test_an_immediate_exit_in_a_handler_ends_the_process(
    world: World, tmp_path: pathlib.Path, function: str
) -> None:
    code = f"""
        import os

        @kopf.on.create('kopfexamples')
        {function} fn(**_):
            os._exit(3)
        """
    start(world, tmp_path, code)
    (process,) = world.processes
    assert process.wait(60) == 3
    world.processes.clear()


def test_other_loops_in_handlers(world: World, tmp_path: pathlib.Path) -> None:
    code = """
        import asyncio

        async def five():
            await asyncio.sleep(0)
            return 5

        @kopf.on.create('kopfexamples')
        def own_loop(**_):
            return asyncio.run(five())

        @kopf.on.create('kopfexamples', retries=1)
        async def nested_loop(**_):
            return asyncio.run(five())

        @kopf.on.create('kopfexamples')
        async def good(**_):
            return await five()
        """
    start(world, tmp_path, code)
    assert status(world, "own_loop") == 5
    assert status(world, "good") == 5
    world.says("asyncio.run() cannot be called from a running event loop")
    world.stop()


def test_running_in_a_running_loop_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="running event loop"):
            kopf.run(clusterwide=True, standalone=True)

    with pytest.warns(RuntimeWarning, match="never awaited"):
        asyncio.run(main())


def test_an_exit_in_a_thread_neither_hangs_nor_panics(world: World, tmp_path: pathlib.Path) -> None:
    code = """
        @kopf.on.create('kopfexamples', retries=1)
        def fn(**_):
            raise SystemExit(5)
        """
    start(world, tmp_path, code)
    world.says("kopf")
    (process,) = world.processes
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait(60)
    world.processes.clear()
    assert "panicked" not in world.text()


@pytest.mark.parametrize("function", ["def", "async def"])
@pytest.mark.parametrize(
    "handler, name",
    [
        ("@kopf.on.create('kopfexamples')", "Handler 'fn'"),
        ("@kopf.daemon('kopfexamples')", "Daemon 'fn'"),
        ("@kopf.on.startup()", "Activity 'fn'"),
    ],
)
def test_an_exit_in_a_handler_is_the_named_reason_of_the_end(
    world: World, tmp_path: pathlib.Path, function: str, handler: str, name: str
) -> None:
    code = f"""
        {handler}
        {function} fn(**_):
            raise SystemExit(5)
        """
    start(world, tmp_path, code)
    (process,) = world.processes
    assert process.wait(60) == 5
    world.processes.clear()
    assert f"{name} ends the operator: SystemExit(5)" in world.text()
    assert "panicked" not in world.text()


@pytest.mark.parametrize(
    "option, expected",
    [
        ("when=condition", "ZeroDivisionError"),
        ("labels={'a': condition}", "ZeroDivisionError"),
        ("field='spec', value=condition", "ZeroDivisionError"),
    ],
)
def test_an_error_of_a_filter_is_logged_with_its_place(
    world: World, tmp_path: pathlib.Path, option: str, expected: str
) -> None:
    code = f"""
        def condition(*_, **__):
            return 1 / 0

        @kopf.on.create('kopfexamples', {option})
        def fn(**_): ...
        """
    start(world, tmp_path, code)
    world.says(f"Throttling for 1 seconds due to an unexpected error: {expected}")
    world.says("in condition")
    world.says("Traceback (most recent call last):")
    world.stop()


def test_a_decision_with_a_result_that_is_no_json_is_explained(
    world: World, tmp_path: pathlib.Path
) -> None:
    code = """
        @kopf.on.create('kopfexamples')
        def good(patch, **_):
            patch.fns.append(change)
            return 'good'

        def change(body):
            body['spec']['average'] = float('nan')
        """
    start(world, tmp_path, code)
    world.says("nan and infinity cannot be expressed in JSON")
    world.stop()
