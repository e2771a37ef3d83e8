"""``python -m crosscheck KOPF_PYTHON [scenario ...]``: tells where the engines differ."""

from __future__ import annotations

import concurrent.futures
import difflib
import json
import pathlib
import sys

from crosscheck.driver import Engine, Run, iter_scenarios, read_excuse

import kopf

OURS = Engine("ours", sys.executable, str(pathlib.Path(kopf.__file__).parent.parent))


def compare(kopf_python: str, script: pathlib.Path) -> list[str]:
    runs = [Run(engine, script) for engine in (Engine("kopf", kopf_python), OURS)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        theirs, ours = pool.map(Run.run, runs)
    report: list[str] = []
    for part in ("objects", "events", "calls", "lines"):
        if part in read_excuse(script):
            continue
        sides: list[list[str]] = []
        for outcome in (theirs, ours):
            values = getattr(outcome, part)
            sides.append([v if isinstance(v, str) else json.dumps(v, indent=1) for v in values])
        if part == "lines":
            # Lines about different things come from different tasks: the order is not promised.
            sides = [sorted(side) for side in sides]
        before = "\n".join(sides[0]).splitlines()
        after = "\n".join(sides[1]).splitlines()
        report += difflib.unified_diff(before, after, f"kopf/{part}", f"ours/{part}", "", "", 2, "")
    return report


def main() -> int:
    kopf_python, *names = sys.argv[1:]
    scripts = [s for s in iter_scenarios() if not names or s.stem in names]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        futures = {script: pool.submit(compare, kopf_python, script) for script in scripts}
        for script, future in futures.items():
            report = future.result()
            failed += bool(report)
            print(f"{'DIFFERENT' if report else 'same'}: {script.stem}", flush=True)
            if report:
                print("\n".join("    " + line for line in report), flush=True)
    print(f"{len(scripts) - failed} of {len(scripts)} are the same")
    return 1 if failed else 0


sys.exit(main())
