"""Commands that Kopf does not have: ``kopf dev``, ``kopf manifests``, ``kopf new``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from typing import Any

import click

from kopf._handlers import registries
from kopf._run import embedding, loaders
from kopf._settings import configuration

_POLLING = 0.3
_STOPPING = 20.0


def add_to(group: click.Group) -> None:
    """Add the commands to the main one."""
    for command in (dev, manifests, new):
        group.add_command(command)


@click.command()
@click.option("--load", "documents", multiple=True, help="Apply a manifest to the cluster.")
@click.option("-v", "--verbose", is_flag=True)
@click.option("--describe", is_flag=True, hidden=True)
@click.argument("paths", nargs=-1, required=True)
def dev(
    paths: tuple[str, ...], documents: tuple[str, ...], verbose: bool, describe: bool = False
) -> None:
    """Run scripts on an embedded cluster, and restart them when they are saved."""
    if describe:
        loaders.preload(paths=paths, modules=())
        click.echo(json.dumps(embedding.describe(None, documents)))
        return
    probes = embedding.probes()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # to stop the operator, too
    with embedding.cluster(probes) as cluster:
        runs = _Runs(cluster, paths, documents, ["--verbose"] if verbose else [], probes)
        try:
            runs.start()
            before = _versions(paths)
            while True:
                time.sleep(_POLLING)
                now = _versions(paths)
                if now != before:
                    before = now
                    click.echo("The files have changed: restarting.", err=True)
                    runs.stop()
                    runs.start()
        except KeyboardInterrupt:
            pass
        finally:
            runs.stop()


class _Runs:
    """The runs of an operator in processes of their own, one after another."""

    def __init__(
        self,
        cluster: Any,
        paths: Collection[str],
        documents: Collection[str],
        options: Collection[str],
        probes: str,
    ) -> None:
        self._cluster = cluster
        self._paths = paths
        self._documents = documents
        self._options = ["-A", "--standalone", "--liveness", probes, *options]
        self._process: subprocess.Popen[bytes] | None = None
        # Without the current directory in the path: a script can be called as a standard module.
        self._environment = {**os.environ, "PYTHONSAFEPATH": "1"}

    def _command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "kopf", *args, *self._paths]

    def start(self) -> None:
        """Define the resources of the scripts as they are now, and run them."""
        loads = [arg for document in self._documents for arg in ("--load", document)]
        command = self._command("dev", "--describe", *loads)
        described = subprocess.run(command, env=self._environment, stdout=subprocess.PIPE)
        if described.returncode != 0:
            click.echo("The operator does not start: waiting for the next change.", err=True)
            return
        # Objects only once: they may have been changed or deleted since.
        self._cluster.install_described(*json.loads(described.stdout.splitlines()[-1]))
        self._documents = ()
        command = self._command("run", *self._options)
        self._process = subprocess.Popen(command, env=self._environment)

    def stop(self) -> None:
        """Stop the operator, if it runs."""
        process, self._process = self._process, None
        if process is not None:
            _stop(process)


def _versions(paths: Collection[str]) -> dict[str, float]:
    """Get the times of changes of all Python files beside the scripts."""
    import pathlib  # slow to import, rarely needed

    directories = {os.path.dirname(os.path.abspath(path)) for path in paths}
    files = [file for directory in directories for file in pathlib.Path(directory).rglob("*.py")]
    return {str(file): file.stat().st_mtime for file in files if file.exists()}


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=_STOPPING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@click.command()
@click.option("--name", required=True, help="The name of the operator.")
@click.option("--image", required=True, help="Its image.")
@click.option("--into", "namespace", default="default", help="Its own namespace.")
@click.option("-n", "--namespace", "serves", multiple=True, help="Namespaces that it serves.")
@click.option("-o", "--output", type=click.Path(file_okay=False), help="A directory for the files.")
@click.option("-m", "--module", "modules", multiple=True)
@click.argument("paths", nargs=-1)
def manifests(
    paths: tuple[str, ...],
    modules: tuple[str, ...],
    name: str,
    image: str,
    namespace: str,
    serves: tuple[str, ...],
    output: str | None,
) -> None:
    """Print the manifests of an operator, with the least rights that its handlers need."""
    from kopf import _engine

    loaders.preload(paths=paths, modules=modules)
    files = _engine.build_manifests(
        registry=registries.get_default_registry(),
        settings=configuration.OperatorSettings(),
        name=name,
        image=image,
        namespace=namespace,
        serves=serves,
    )
    for file, content in files.items():
        if output is None:
            click.echo(f"---\n# {file}\n{content}")
        else:
            import pathlib  # slow to import, rarely needed

            directory = pathlib.Path(output)
            directory.mkdir(parents=True, exist_ok=True)
            (directory / file).write_text(content, encoding="utf-8")


_OPERATOR = '''\
"""An operator for things of example.com."""

import kopf


@kopf.on.create("example.com", "v1", "things")
def create(spec, name, logger, **_):
    logger.info(f"Creating {name}.")
    return {"size": spec.get("size", 1)}
'''

_TEST = '''\
"""Tests of the operator: each has a cluster and a clock of its own."""

import pathlib
import runpy

SCRIPT = str(pathlib.Path(__file__).parent / "handlers.py")


async def test_things_get_their_size(kopf_world):
    runpy.run_path(SCRIPT)  # registers the handlers
    async with kopf_world.operator():
        things = kopf_world.objects("things.v1.example.com")
        things.create("one", spec={"size": 3})
        await kopf_world.settled()
        assert things.get("one")["status"] == {"create": {"size": 3}}
'''

_THING = """\
apiVersion: example.com/v1
kind: Thing
metadata:
  name: one
spec:
  size: 3
"""

_PYTEST = """\
[pytest]
asyncio_mode = auto
"""

_README = """\
# An operator

    kopf run --embedded --load thing.yaml handlers.py    # with a cluster inside
    kopf dev --load thing.yaml handlers.py               # the same, restarted on changes
    pip install pytest pytest-asyncio && pytest          # tests
    kopf run -A handlers.py                              # in the current cluster
"""


@click.command()
@click.option("--python", is_flag=True, default=True, hidden=True)
@click.argument("name")
def new(name: str, python: bool) -> None:
    """Make a directory with an operator, its test and an object."""
    import pathlib  # slow to import, rarely needed

    directory = pathlib.Path(name)
    if directory.exists():
        raise click.UsageError(f"{name} exists already.")
    directory.mkdir(parents=True)
    files = {
        "handlers.py": _OPERATOR,
        "test_handlers.py": _TEST,
        "thing.yaml": _THING,
        "pytest.ini": _PYTEST,
        "README.md": _README,
    }
    for file, content in files.items():
        (directory / file).write_text(content, encoding="utf-8")
    click.echo(f"cd {name} && kopf run --embedded --load thing.yaml handlers.py")
