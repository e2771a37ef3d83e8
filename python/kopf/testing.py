"""Tools for tests of operators.

Worlds are also a fixture of pytest: ``kopf_world``.
"""

from kopf._engine import faults as fault
from kopf._engine.cluster import RequestError
from kopf._engine.requests import LoggedRequest, Requests
from kopf._engine.world import World
from kopf._tools.runner import KopfRunner

__all__ = ["KopfRunner", "LoggedRequest", "RequestError", "Requests", "World", "fault"]
