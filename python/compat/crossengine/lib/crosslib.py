"""What scenarios are written with: their steps for the driver, their calls for the comparison.

A shared scenario is a function that declares handlers for a resource of its own, with the steps
that happen to the objects of this resource. A script is an operator of its own with the constant
``STEPS``. The same file is run by Kopf and by this package.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

GROUP = "cross.dev"


@dataclasses.dataclass(frozen=True)
class Step:
    """One thing that happens to an object."""

    verb: str
    name: str = "one"
    body: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Scenario:
    """What is compared under one name."""

    name: str
    steps: tuple[Step, ...]
    subresource: bool
    operator: str
    excuses: Mapping[str, str]


SCENARIOS: dict[str, Scenario] = {}


def create(name: str = "one", **fields: Any) -> Step:
    """Create an object."""
    return Step("create", name, fields)


def patch(name: str = "one", **fields: Any) -> Step:
    """Apply a merge patch to an object."""
    return Step("patch", name, fields)


def delete(name: str = "one") -> Step:
    """Delete an object."""
    return Step("delete", name)


def restart() -> Step:
    """Stop the operator, and start it again."""
    return Step("restart")


def wait() -> Step:
    """Do nothing in this round."""
    return Step("wait")


def scenario(
    *steps: Step,
    subresource: bool = False,
    operator: str = "shared",
    excuses: Mapping[str, str] | None = None,
) -> Callable[[Callable[[str], None]], None]:
    """Declare a scenario; the name of the function is the name of its resource.

    Scenarios with the same ``operator`` are run by the same process. ``excuses`` are the parts that
    may differ, with the reasons.
    """

    def decorator(fn: Callable[[str], None]) -> None:
        name = fn.__name__.replace("_", "") + "s"
        SCENARIOS[name] = Scenario(name, steps, subresource, operator, excuses or {})
        if os.environ.get("CROSS_OPERATOR", operator) == operator:
            fn(name)

    return decorator


_lock = threading.Lock()


def note(*values: Any) -> None:
    """Note a call in a script: there is one scenario in it, so its name is not needed."""
    call("", "", values=values)


def call(kind: str, handler: str, **facts: Any) -> None:
    """Note that a handler was called, with facts that must be the same in both engines."""
    path = os.environ.get("CROSS_CALLS")
    if path:
        line = json.dumps({"kind": kind, "handler": handler, "facts": facts}, default=repr)
        with _lock, open(path, "a", encoding="utf-8") as f:
            f.write(line + "\n")
