"""Runs the same operators under Kopf and under this package, and compares what they do.

    python -m crossengine --kopf /path/to/venv-with-kopf/bin/python [names...]

Every run has a fresh embedded cluster. Compared: final objects, Kubernetes events, calls of
handlers in order, refusals of requests, and messages in the log. Scenarios with a restart are also
handed over from one engine to the other, in both directions; scenarios with two operators are also
run with one operator of each engine.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import difflib
import json
import os
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

from crossengine.driver import Run
from crossengine.groups import Group, load

Outcome = dict[str, dict[str, Any]]


def runs(group: Group, kopf: str, ours: str) -> Iterator[tuple[str, Run]]:
    """Make all runs of a group: under Kopf at first, then those that must be the same."""
    names = list(group.operators)
    yield "kopf", Run(group, dict.fromkeys(names, kopf))
    yield "", Run(group, dict.fromkeys(names, ours))
    if group.has_restarts:
        yield "from kopf to ours: ", Run(group, dict.fromkeys(names, kopf), successor=ours)
        yield "from ours to kopf: ", Run(group, dict.fromkeys(names, ours), successor=kopf)
    if len(names) > 1:
        first, *others = names
        yield "kopf with ours: ", Run(group, dict.fromkeys(others, ours) | {first: kopf})
        yield "ours with kopf: ", Run(group, dict.fromkeys(others, kopf) | {first: ours})


def execute(run: Run) -> Outcome:
    """Run it, and run it again if an operator was too slow to start on a busy machine."""
    try:
        return run.run()
    except RuntimeError as e:
        print(f"again, because {e}", flush=True)
        return run.run()


def texts(part: Any) -> list[str]:
    return json.dumps(part, indent=1, sort_keys=True).splitlines()


def compare(
    group: Group, theirs: Outcome, ours: Outcome, title: str, report: dict[str, Any]
) -> int:
    """Print what is different; return in how many scenarios something is."""
    failed = 0
    for scenario in group.scenarios:
        a, b = theirs[scenario.name], ours[scenario.name]
        report[title + scenario.name] = {"kopf": a, "ours": b}
        different = [key for key in a if a[key] != b[key] and key not in scenario.excuses]
        empty = not any(a.values())
        failed += bool(different) or empty
        verdict = "DIFF" if different or empty else "same"
        print(f"{verdict} {title}{scenario.name} {' '.join(different)}", flush=True)
        if empty:
            print("    nothing happens under Kopf")
        for key in different:
            lines = difflib.unified_diff(
                texts(a[key]), texts(b[key]), f"kopf/{key}", f"ours/{key}", "", "", 2, ""
            )
            print("".join(f"    {line}\n" for line in lines), end="", flush=True)
    return failed


def compare_all(
    groups: list[Group], kopf: str, jobs: int, report: dict[str, Any]
) -> list[Group]:
    """Run groups, several at the same time; return those in which something is different."""
    different: dict[str, Group] = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = [
            (group, title, pool.submit(execute, run))
            for group in groups
            for title, run in runs(group, kopf, sys.executable)
        ]
        theirs: Outcome = {}
        for group, title, future in futures:
            if title == "kopf":
                theirs = future.result()
            elif compare(group, theirs, future.result(), title, report):
                different[group.name] = group
    return list(different.values())


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--kopf",
        required=True,
        type=os.path.abspath,
        help="Python with the original Kopf installed",
    )
    parser.add_argument("--report", type=pathlib.Path, help="write all observations as JSON")
    parser.add_argument("--jobs", type=int, default=3, help="how many runs at the same time")
    parser.add_argument("--list", action="store_true", help="only print the names")
    parser.add_argument("names", nargs="*", help="scenarios or groups; all of them by default")
    options = parser.parse_args()
    wanted = set(options.names)
    groups = [
        group
        for group in load()
        if not wanted or group.name in wanted or wanted & {s.name for s in group.scenarios}
    ]
    if options.list:
        print("\n".join(s.name for group in groups for s in group.scenarios))
        return 0
    report: dict[str, Any] = {}
    different = compare_all(groups, options.kopf, options.jobs, report)
    failed = 0
    if different:
        # Operators act on timers, and a busy machine delays them: only what differs alone counts.
        print(f"again, alone: {' '.join(group.name for group in different)}", flush=True)
        failed = len(compare_all(different, options.kopf, 1, report))
    count = sum(len(group.scenarios) for group in groups)
    print(f"{len(report)} comparisons of {count} scenarios; groups that differ: {failed}")
    if options.report:
        options.report.write_text(json.dumps(report, indent=1, sort_keys=True))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
