"""What scenarios note: one JSON line per call, in the file of ``$CALLS``."""

import json
import os


def note(*values: object) -> None:
    with open(os.environ["CALLS"], "a") as file:
        file.write(json.dumps(values, default=str) + "\n")
