"""Kopf's internal modules by their names, and its version: operators use some of them.

The names lead to our modules, which have the same public content as far as it makes sense.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kopf._version import __version__

if TYPE_CHECKING:
    import importlib.metadata

_PACKAGES = (
    "kopf._cogs",
    "kopf._cogs.aiokits",
    "kopf._cogs.clients",
    "kopf._cogs.configs",
    "kopf._cogs.helpers",
    "kopf._cogs.structs",
    "kopf._core",
    "kopf._core.actions",
    "kopf._core.engines",
    "kopf._core.intents",
    "kopf._core.reactor",
    "kopf._kits",
)

_MODULES = {
    "kopf._cogs.aiokits.aioadapters": "kopf._run.flags",
    "kopf._cogs.aiokits.aioenums": "kopf._handlers.stoppers",
    "kopf._cogs.aiokits.aiotasks": "kopf._run.tasks",
    "kopf._cogs.clients.api": "kopf._clients.api",
    "kopf._cogs.clients.auth": "kopf._clients.auth",
    "kopf._cogs.clients.creating": "kopf._clients.objects",
    "kopf._cogs.clients.errors": "kopf._clients.errors",
    "kopf._cogs.clients.events": "kopf._clients.events",
    "kopf._cogs.clients.fetching": "kopf._clients.objects",
    "kopf._cogs.clients.patching": "kopf._clients.objects",
    "kopf._cogs.configs.arrays": "kopf._settings.arrays",
    "kopf._cogs.configs.configuration": "kopf._settings.configuration",
    "kopf._cogs.configs.conventions": "kopf._settings.conventions",
    "kopf._cogs.configs.diffbase": "kopf._settings.diffbase",
    "kopf._cogs.configs.progress": "kopf._settings.progress",
    "kopf._cogs.helpers.hostnames": "kopf._run.identity",
    "kopf._cogs.helpers.loaders": "kopf._run.loaders",
    "kopf._cogs.helpers.thirdparty": "kopf._structs.thirdparty",
    "kopf._cogs.helpers.typedefs": "kopf._handlers.callbacks",
    "kopf._cogs.helpers.versions": "kopf._version",
    "kopf._cogs.structs.bodies": "kopf._structs.bodies",
    "kopf._cogs.structs.credentials": "kopf._structs.credentials",
    "kopf._cogs.structs.dicts": "kopf._structs.dicts",
    "kopf._cogs.structs.diffs": "kopf._structs.diffs",
    "kopf._cogs.structs.ephemera": "kopf._structs.ephemera",
    "kopf._cogs.structs.finalizers": "kopf._structs.finalizers",
    "kopf._cogs.structs.ids": "kopf._structs.ids",
    "kopf._cogs.structs.patches": "kopf._structs.patches",
    "kopf._cogs.structs.references": "kopf._structs.references",
    "kopf._cogs.structs.reviews": "kopf._structs.reviews",
    "kopf._core.actions.execution": "kopf._handlers.execution",
    "kopf._core.actions.invocation": "kopf._handlers.invocation",
    "kopf._core.actions.lifecycles": "kopf._handlers.lifecycles",
    "kopf._core.actions.loggers": "kopf._logs.loggers",
    "kopf._core.actions.progression": "kopf._handlers.progression",
    "kopf._core.engines.activities": "kopf._engine.errors",
    "kopf._core.engines.admission": "kopf._handlers.admission",
    "kopf._core.engines.indexing": "kopf._handlers.indexing",
    "kopf._core.engines.peering": "kopf._run.identity",
    "kopf._core.engines.posting": "kopf._run.posting",
    "kopf._core.intents.callbacks": "kopf._handlers.callbacks",
    "kopf._core.intents.causes": "kopf._handlers.causes",
    "kopf._core.intents.filters": "kopf._handlers.filters",
    "kopf._core.intents.handlers": "kopf._handlers.handlers",
    "kopf._core.intents.piggybacking": "kopf._login.piggybacking",
    "kopf._core.intents.registries": "kopf._handlers.registries",
    "kopf._core.intents.stoppers": "kopf._handlers.stoppers",
    "kopf._core.reactor.running": "kopf._run.running",
    "kopf._core.reactor.subhandling": "kopf._handlers.subhandling",
    "kopf._kits.hierarchies": "kopf._tools.hierarchies",
    "kopf._kits.loops": "kopf._run.loops",
    "kopf._kits.runner": "kopf._tools.runner",
    "kopf._kits.webhacks": "kopf._tools.webhacks",
    "kopf._kits.webhooks": "kopf._tools.webhooks",
}


class _Finder:
    """Finds Kopf's internal modules, and loads ours instead; finds Kopf's metadata.

    Not derived from the classes of ``importlib.abc``: it is slow to import.
    """

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        loader: Any = self
        if fullname in _PACKAGES:
            return importlib.machinery.ModuleSpec(fullname, loader, is_package=True)
        if fullname in _MODULES:
            return importlib.machinery.ModuleSpec(fullname, loader)
        return None

    def find_distributions(self, context: Any) -> Iterator[importlib.metadata.Distribution]:
        """Answer ``importlib.metadata.version("kopf")``: operators log it, or depend on it."""
        if context.name == "kopf" and "path" not in vars(context):
            yield _distribution()

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        if spec.name in _PACKAGES:
            return None
        module = importlib.import_module(_MODULES[spec.name])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        spec = module.__spec__
        if spec is not None and spec.loader_state is not None:
            module.__spec__ = spec.loader_state  # the import system has replaced it


def _distribution() -> importlib.metadata.Distribution:
    """Describe the version of Kopf whose interface this package has."""
    import importlib.metadata
    import pathlib

    class Compatible(importlib.metadata.Distribution):
        def read_text(self, filename: str) -> str | None:
            text = f"Metadata-Version: 2.1\nName: kopf\nVersion: {__version__}\n"
            return text if filename == "METADATA" else None

        def locate_file(self, path: Any) -> Any:
            return pathlib.Path(__file__).parent.parent / path

    return Compatible()


def install() -> None:
    """Make Kopf's internal names importable; nothing is imported by this."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
