"""Loads scenarios: what is run together by one operator, and what happens in the meantime.

Shared scenarios are functions in files (see ``crosslib``); each has a resource of its own, so that
many of them are run at once by one operator. Scripts are operators of their own with constants that
are read without running them: ``STEPS``; ``DIFFERS``, the parts of the outcome that may differ;
``RACES``, whether the order of calls is left to chance, since they are made by several tasks;
``OPERATORS``, the options of ``kopf run`` of several operators by their names; ``FAILS``, whether
operators may end by themselves before they have logged in.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pathlib
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

HERE = pathlib.Path(__file__).parent
LIBRARY = HERE / "lib"
SHARED = HERE / "scenarios" / "shared"
SCRIPTS = HERE / "scenarios" / "scripts"
sys.path.insert(0, str(LIBRARY))
sys.path.insert(0, str(SHARED))

import crosslib

ALONE = ("-A", "--standalone")


@dataclasses.dataclass(frozen=True)
class Scenario:
    """What is compared under one name."""

    name: str
    group: str
    plural: str
    kind: str
    steps: tuple[crosslib.Step, ...]
    subresource: bool = False
    excuses: Collection[str] = ()
    has_races: bool = False

    @property
    def collection(self) -> str:
        return f"/apis/{self.group}/v1/namespaces/default/{self.plural}"


@dataclasses.dataclass(frozen=True)
class Group:
    """Scenarios that are run together."""

    name: str
    files: tuple[pathlib.Path, ...]
    scenarios: tuple[Scenario, ...]
    is_script: bool
    operators: Mapping[str, tuple[str, ...]]
    starts: tuple[str, ...]
    may_fail: bool = False

    @property
    def has_restarts(self) -> bool:
        return any(step.verb == "restart" for s in self.scenarios for step in s.steps)


def load() -> Iterator[Group]:
    """Load all scenarios, in the groups in which they are run."""
    files = tuple(sorted(SHARED.glob("*.py")))
    for path in files:
        importlib.import_module(path.stem)
    everything = crosslib.SCENARIOS.values()
    for operator in sorted({scenario.operator for scenario in everything}):
        chosen = tuple(_shared(s) for s in everything if s.operator == operator)
        yield Group(operator, files, chosen, False, {"main": ALONE}, ("main",))
    for path in sorted(SCRIPTS.glob("*.py")):
        yield _script(path)


def _shared(given: crosslib.Scenario) -> Scenario:
    return Scenario(
        name=given.name,
        group=crosslib.GROUP,
        plural=given.name,
        kind=given.name.capitalize(),
        steps=given.steps,
        subresource=given.subresource,
        excuses=tuple(given.excuses),
    )


def _script(path: pathlib.Path) -> Group:
    constants = _constants(path)
    operators = {name: tuple(args) for name, args in constants.get("OPERATORS", {}).items()}
    steps = tuple(_step(*given) for given in constants["STEPS"])
    scenario = Scenario(
        name=path.stem,
        group="kopf.dev",
        plural="kopfexamples",
        kind="KopfExample",
        steps=steps,
        excuses=tuple(constants.get("DIFFERS", ())),
        has_races=constants.get("RACES", False),
    )
    operators = operators or {"main": ALONE}
    later = {step.name for step in steps if step.verb == "start"}
    starts = tuple(name for name in operators if name not in later)
    may_fail = constants.get("FAILS", False)
    return Group(path.stem, (path,), (scenario,), True, operators, starts, may_fail)


def _constants(path: pathlib.Path) -> dict[str, Any]:
    """Read the constants of a script that are plain values."""
    found: dict[str, Any] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                continue
    return found


def _step(verb: str, name: Any = "", body: Any = None) -> crosslib.Step:
    return crosslib.Step(verb, name, body or {})
