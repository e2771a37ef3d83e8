"""Identifiers of handlers."""

from typing import NewType

HandlerId = NewType("HandlerId", str)
"""The id of a handler: the key of its progress, of its result, of its index."""
