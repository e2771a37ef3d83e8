"""Checks of the installation."""

from __future__ import annotations

import functools
import os
import sys

OUR_NAME = "kopf-rs"


@functools.cache
def refuse_original() -> None:
    """Fail if the original Kopf is installed too: both have the same files."""
    for directory in dict.fromkeys(sys.path):
        try:
            names = os.listdir(directory or ".")
        except OSError:
            continue
        for name in names:
            if name.startswith("kopf-") and name.endswith(".dist-info"):
                raise ImportError(
                    f"Both {OUR_NAME} and the original kopf are installed: {name} is in "
                    f"{directory!r}. They provide the same package. Keep one of them: "
                    f"run `pip uninstall kopf {OUR_NAME}`, then `pip install {OUR_NAME}`."
                )
