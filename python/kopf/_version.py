"""The version of Kopf whose interface this package has."""

from __future__ import annotations

__version__ = "1.45.2"
__version_tuple__: tuple[int | str, ...] = (1, 45, 2)
__commit_id__: str | None = None

version = __version__
version_tuple = __version_tuple__
commit_id = __commit_id__
