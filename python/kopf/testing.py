"""Tools for tests of operators."""

from kopf._tools.runner import KopfRunner

__all__ = ["KopfRunner"]
