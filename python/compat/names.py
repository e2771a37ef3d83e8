"""Writes the public names of the installed ``kopf`` with their signatures, as JSON.

    python compat/names.py > compat/kopf-1.45.2.json

Run it with the original Kopf to renew the file that ``tests/test_names.py`` compares with.
"""

from __future__ import annotations

import enum
import inspect
import json
from typing import Any


def signature(value: Any) -> list[list[str]] | None:
    """Describe parameters: names, kinds, and defaults if these are plain values.

    Enums and aliases of types are left out: these depend on the version of Python.
    """
    is_enum = inspect.isclass(value) and issubclass(value, enum.Enum)
    is_alias = hasattr(value, "__origin__") or not (
        inspect.isclass(value) or inspect.isroutine(value)
    )
    if is_enum or is_alias:
        return None
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    described = []
    for parameter in found.parameters.values():
        # Names with two underscores are positional-only; their exact names mean nothing.
        name = "_" if "__" in parameter.name else parameter.name
        default = parameter.default
        plain = isinstance(default, (str, int, float, bool, tuple, frozenset, type(None)))
        text = "required" if default is parameter.empty else repr(default) if plain else "object"
        described.append([name, parameter.kind.name, text])
    return described


def members(value: Any) -> dict[str, Any]:
    """Describe the public members of a class that are defined in this class."""
    found: dict[str, Any] = {}
    for name, member in vars(value).items():
        if not name.startswith("_"):
            is_function = inspect.isfunction(member) or isinstance(member, staticmethod)
            found[name] = signature(member) if is_function else None
    return found


def describe() -> dict[str, Any]:
    """Describe everything public."""
    import kopf
    import kopf.cli
    import kopf.on
    import kopf.testing

    every = {name: getattr(kopf, name) for name in kopf.__all__}
    for name in ("harmonize_naming", "adjust_namespace"):
        every[name] = getattr(kopf, name)
    modules = (("on", kopf.on), ("lifecycles", kopf.lifecycles))
    for prefix, module in modules:
        for name, value in vars(module).items():
            if inspect.isfunction(value) and not name.startswith("_"):
                every[f"{prefix}.{name}"] = value
    every["testing.KopfRunner"] = kopf.testing.KopfRunner
    every["cli.CLIControls"] = kopf.cli.CLIControls
    return {
        name: {
            "signature": signature(value) if callable(value) else None,
            "members": members(value) if inspect.isclass(value) else None,
        }
        for name, value in sorted(every.items())
    }


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in describe().items()]
    print("{\n" + ",\n".join(lines) + "\n}")
