"""Loading of scripts and modules with handlers."""

from __future__ import annotations

import importlib
import importlib.util
import os.path
import sys
from collections.abc import Iterable


def preload(paths: Iterable[str], modules: Iterable[str]) -> None:
    """Load scripts, then modules, so that their decorators register handlers."""
    for index, path in enumerate(paths):
        sys.path.insert(0, os.path.abspath(os.path.dirname(path)))
        name = f"__kopf_script_{index}__{path}"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"Failed loading {path}: no module or loader.")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    for name in modules:
        importlib.import_module(name)
