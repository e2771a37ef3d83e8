"""Commands that Kopf does not have: ``kopf dev``, ``kopf manifests``, ``kopf new``."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Collection

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
@click.argument("paths", nargs=-1, required=True)
def dev(paths: tuple[str, ...], documents: tuple[str, ...], verbose: bool) -> None:
    """Run scripts on an embedded cluster, and restart them when they are saved."""
    with embedding.cluster() as cluster:
        loaders.preload(paths=paths, modules=())
        embedding.install(cluster, None, documents)
        command = [sys.executable, "-m", "kopf", "run", "-A", "--standalone"]
        command += ["--verbose"] if verbose else []
        before = _versions(paths)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # to stop the child too
        # Without the current directory in the path: a script can be called as a standard module.
        environment = {**os.environ, "PYTHONSAFEPATH": "1"}
        process = subprocess.Popen([*command, *paths], env=environment)
        try:
            while True:
                time.sleep(_POLLING)
                now = _versions(paths)
                if now != before:
                    before = now
                    click.echo("The files have changed: restarting.", err=True)
                    _stop(process)
                    process = subprocess.Popen([*command, *paths], env=environment)
        except KeyboardInterrupt:
            pass
        finally:
            _stop(process)


def _versions(paths: Collection[str]) -> dict[str, float]:
    """Get the times of changes of all Python files beside the scripts."""
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
"""Tests of the operator: each has a cluster of its own."""

import asyncio
import pathlib
import runpy

PATH = "/apis/example.com/v1/namespaces/default/things"
SCRIPT = str(pathlib.Path(__file__).parent / "handlers.py")


async def test_things_get_their_size(kopf_cluster, kopf_registry, kopf_operator):
    runpy.run_path(SCRIPT)  # registers the handlers
    async with kopf_operator():
        thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "one"}}
        kopf_cluster.request("POST", PATH, {**thing, "spec": {"size": 3}})
        while not (status := kopf_cluster.request("GET", f"{PATH}/one").get("status")):
            await asyncio.sleep(0.01)
    assert status == {"create": {"size": 3}}
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
