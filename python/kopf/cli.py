"""The command ``kopf``: Kopf's commands here, all others in the engine."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import os
import sys
from collections.abc import Callable, Collection
from typing import Any

import click

from kopf import _version
from kopf._handlers import registries
from kopf._logs import loggers
from kopf._run import commands, flags, loaders, loops, running
from kopf._settings import configuration
from kopf._structs import credentials, references


@dataclasses.dataclass()
class CLIControls:
    """What cannot be passed by the command line: for ``kopf.testing.KopfRunner``."""

    ready_flag: flags.Flag | None = None
    stop_flag: flags.Flag | None = None
    vault: credentials.Vault | None = None
    registry: registries.OperatorRegistry | None = None
    settings: configuration.OperatorSettings | None = None
    loop: asyncio.AbstractEventLoop | None = None


_RANGES_MAX = 1024
_FORMATS = [format.name.lower() for format in loggers.LogFormat]


def logging_options(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of logging to a command."""

    @click.option("-v", "--verbose", is_flag=True)
    @click.option("-d", "--debug", is_flag=True)
    @click.option("-q", "--quiet", is_flag=True)
    @click.option("--log-format", type=click.Choice(_FORMATS, case_sensitive=False), default="full")
    @click.option("--log-refkey", type=str)
    @click.option("--log-prefix/--no-log-prefix", default=None)
    @functools.wraps(fn)
    def wrapper(
        verbose: bool,
        quiet: bool,
        debug: bool,
        log_format: str = "full",
        log_prefix: bool | None = False,
        log_refkey: str | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        loggers.configure(
            debug=debug,
            verbose=verbose,
            quiet=quiet,
            log_format=loggers.LogFormat[log_format.upper()],
            log_refkey=log_refkey,
            log_prefix=log_prefix,
        )
        return fn(*args, **kwargs)

    return wrapper


class _Group(click.Group):
    """Kopf's commands, and the commands of the engine."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from kopf import _engine

        return sorted({*super().list_commands(ctx), *_engine.NATIVE_COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        from kopf import _engine

        help_text = _engine.NATIVE_COMMANDS.get(cmd_name)
        return None if help_text is None else _native_command(cmd_name, help_text)


def _native_command(name: str, help_text: str) -> click.Command:
    """Make a command that passes all its arguments to the engine."""

    def callback(args: tuple[str, ...]) -> None:
        from kopf import _engine

        sys.exit(_engine.native_cli([name, *args]))

    return click.Command(
        name,
        callback=callback,
        params=[click.Argument(["args"], nargs=-1, type=click.UNPROCESSED)],
        help=help_text,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )


@click.group(name="kopf", cls=_Group, context_settings={"auto_envvar_prefix": "KOPF"})
@click.version_option(version=_version.__version__, prog_name="kopf")
@click.make_pass_decorator(CLIControls, ensure=True)
def main(__controls: CLIControls) -> None:
    """Kubernetes operators in a few lines."""


@main.command()
@logging_options
@click.option("-A", "--all-namespaces", "clusterwide", is_flag=True)
@click.option("-n", "--namespace", "namespaces", multiple=True)
@click.option("--standalone", is_flag=True, default=None)
@click.option("--dev", is_flag=True)
@click.option("-L", "--liveness", "liveness_endpoint", type=str)
@click.option("-P", "--peering", "peering_name", type=str, envvar="KOPF_RUN_PEERING")
@click.option("-p", "--priority", type=int)
@click.option("-m", "--module", "modules", multiple=True)
@click.option("--embedded", is_flag=True, help="Run with a cluster inside of the process.")
@click.option("--load", "manifests", multiple=True, help="Apply a manifest to that cluster.")
@click.option(
    "--leader-elect",
    "lease",
    metavar="NAME",
    envvar="KOPF_RUN_LEADER_ELECT",
    help="Act only while this replica holds the Lease NAME; the others stand by.",
)
@click.option(
    "--shards",
    metavar="auto|N",
    callback=lambda _ctx, _param, value: _ranges(value),
    help="Share the objects with the other replicas of --leader-elect.",
)
@click.option(
    "--snapshot",
    metavar="FILE",
    help="Remember in this file which objects are handled, so that a restart does not list them.",
)
@click.argument("paths", nargs=-1)
@click.make_pass_decorator(CLIControls, ensure=True)
def run(
    __controls: CLIControls,
    paths: list[str],
    modules: list[str],
    peering_name: str | None,
    priority: int | None,
    dev: bool | None,
    standalone: bool | None,
    namespaces: Collection[references.NamespacePattern],
    clusterwide: bool,
    liveness_endpoint: str | None,
    embedded: bool = False,
    manifests: Collection[str] = (),
    lease: str | None = None,
    shards: int | None = None,
    snapshot: str | None = None,
) -> None:
    """Start an operator process and handle all the requests."""
    priority = 666 if dev else priority
    legacy = os.environ.get("KOPF_RUN_NAMESPACE")
    if legacy:
        namespaces = (*namespaces, legacy)
    if namespaces and clusterwide:
        raise click.UsageError("Either --namespace or --all-namespaces can be used, not both.")
    if manifests and not embedded:
        raise click.UsageError("--load needs --embedded.")
    if shards is not None and lease is None:
        raise click.UsageError(
            "--shards needs --leader-elect NAME: the name of the Leases that all replicas share."
        )
    if snapshot is not None and lease is not None:
        raise click.UsageError("--snapshot is for a single replica, without --leader-elect.")
    if __controls.registry is not None:
        registries.set_default_registry(__controls.registry)
    options: dict[str, Any] = {
        "standalone": standalone,
        "namespaces": namespaces,
        "clusterwide": clusterwide,
        "priority": priority,
        "peering_name": peering_name,
        "liveness_endpoint": liveness_endpoint,
        "registry": __controls.registry,
        "settings": _with_snapshot(
            _with_leadership(__controls.settings, lease, shards), snapshot
        ),
        "stop_flag": __controls.stop_flag,
        "ready_flag": __controls.ready_flag,
        "vault": __controls.vault,
    }
    if embedded:
        from kopf._run import embedding

        options["liveness_endpoint"] = liveness_endpoint or embedding.probes()
        with embedding.cluster(options["liveness_endpoint"]) as cluster:
            loaders.preload(paths=paths, modules=modules)
            embedding.install(cluster, __controls.registry, manifests)
            if not namespaces:
                options["clusterwide"] = True
            _run(__controls, options)
    else:
        loaders.preload(paths=paths, modules=modules)
        _run(__controls, options)


def _ranges(text: str | None) -> int | None:
    """Read the number of ranges; 0 is the default one."""
    if text is None or text == "auto":
        return None if text is None else 0
    if not text.isdecimal() or not 1 <= int(text) <= _RANGES_MAX:
        raise click.BadParameter(
            f"{text!r} is neither 'auto' nor a number from 1 to {_RANGES_MAX}."
        )
    return int(text)


def _with_leadership(
    settings: configuration.OperatorSettings | None, lease: str | None, shards: int | None
) -> configuration.OperatorSettings | None:
    """Apply the options for several replicas to the settings."""
    if lease is None:
        return settings
    settings = configuration.OperatorSettings() if settings is None else settings
    settings.leadership.name = lease
    settings.leadership.mode = "standby" if shards is None else "shards"
    settings.leadership.ranges = shards or settings.leadership.ranges
    return settings


def _with_snapshot(
    settings: configuration.OperatorSettings | None, file: str | None
) -> configuration.OperatorSettings | None:
    """Apply the option for fast restarts to the settings."""
    if file is None:
        return settings
    settings = configuration.OperatorSettings() if settings is None else settings
    settings.snapshots.file = file
    return settings


def _run(controls: CLIControls, options: dict[str, Any]) -> None:
    settings = options["settings"]
    try:
        with loops.proper_loop(suggested_loop=controls.loop) as actual_loop:
            running.run(loop=actual_loop, **options)
    finally:
        if settings is not None and settings is not controls.settings:
            settings.execution.executor.shutdown(wait=False)


def _peering_args(
    namespaces: Collection[str], clusterwide: bool, id: str | None, peering_name: str
) -> list[str]:
    """Write the options of freeze and resume for the engine."""
    args = [arg for namespace in namespaces for arg in ("--namespace", namespace)]
    args += ["--all-namespaces"] if clusterwide else []
    args += ["--id", id] if id else []
    return [*args, "--peering", peering_name]


@main.command()
@logging_options
@click.option("-n", "--namespace", "namespaces", multiple=True)
@click.option("-A", "--all-namespaces", "clusterwide", is_flag=True)
@click.option("-i", "--id", type=str, default=None)
@click.option("--dev", is_flag=True)
@click.option("-P", "--peering", "peering_name", required=True, envvar="KOPF_FREEZE_PEERING")
@click.option("-p", "--priority", type=int, default=100, required=True)
@click.option("-t", "--lifetime", type=int, required=True)
@click.option("-m", "--message", type=str)
@click.make_pass_decorator(CLIControls, ensure=True)
def freeze(
    __controls: CLIControls,
    id: str | None,
    message: str | None,
    lifetime: int,
    namespaces: Collection[str],
    clusterwide: bool,
    peering_name: str,
    priority: int,
    dev: bool,
) -> None:
    """Pause the resource handling in the operator(s)."""
    from kopf import _engine

    args = _peering_args(namespaces, clusterwide, id, peering_name)
    args += ["--priority", str(666 if dev else priority), "--lifetime", str(lifetime)]
    sys.exit(_engine.native_cli(["freeze", *args]))


@main.command()
@logging_options
@click.option("-n", "--namespace", "namespaces", multiple=True)
@click.option("-A", "--all-namespaces", "clusterwide", is_flag=True)
@click.option("-i", "--id", type=str, default=None)
@click.option("-P", "--peering", "peering_name", required=True, envvar="KOPF_RESUME_PEERING")
@click.make_pass_decorator(CLIControls, ensure=True)
def resume(
    __controls: CLIControls,
    id: str | None,
    namespaces: Collection[str],
    clusterwide: bool,
    peering_name: str,
) -> None:
    """Resume the resource handling in the operator(s)."""
    from kopf import _engine

    args = _peering_args(namespaces, clusterwide, id, peering_name)
    sys.exit(_engine.native_cli(["resume", *args]))


commands.add_to(main)
