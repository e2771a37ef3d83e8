"""Attacks on `kopf cluster`, on loopback only: tries each one, and says whether the server held.

    python3 conformance/attacks.py [--kopf target/release/kopf] [--report docs/security-attacks.md]

Needs Python's standard library, and `openssl` for the certificate of a webhook. All loops are bounded in
count and time. Exits with 1 if an attack succeeded.
"""

import argparse
import datetime
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from attacking import access, crowds, disks, http2, protocol, webhooks, weights
from attacking.server import Results, Server

TITLE = """# Attacks

Written by `python3 conformance/attacks.py --report FILE`; do not edit. Each line is one request or situation. *Held* means that the server
did what is expected; *FAILED* that it did not; *not tried* that this machine lacks what the attack needs.
"""


def main():
    root = pathlib.Path(__file__).parent.parent
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kopf", default=str(root / "target/debug/kopf"))
    arguments.add_argument("--report")
    options = arguments.parse_args()
    results = Results()
    with tempfile.TemporaryDirectory() as folder:
        with Server(options.kopf, folder, "--rbac") as server:
            for area in (access, protocol, http2, crowds, weights, webhooks):
                area.run(server, results)
        disks.run(options.kopf, folder, results)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    text = f"{TITLE}\nRun on {now} with `{pathlib.Path(options.kopf).parent.name}/kopf`: {results.totals()}.\n\n{results.table()}"
    if options.report:
        pathlib.Path(options.report).write_text(text)
    print(text)
    return 1 if results.failed() else 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main())
