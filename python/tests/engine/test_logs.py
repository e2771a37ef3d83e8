"""Lines of the engine in Python's logging."""

from __future__ import annotations

import logging

import pytest

import kopf
from kopf._engine.logs import Lines

REF = ("kopf.dev/v1", "KopfExample", "default", "one", "uid")


def test_indexers_succeed_at_the_level_of_kopf(caplog: pytest.LogCaptureFixture) -> None:
    lines = Lines(kopf.OperatorSettings())
    text = "Indexer 'fn' succeeded."
    with caplog.at_level(logging.DEBUG, "kopf.objects"):
        lines.log(logging.DEBUG, "kopf.objects", text, None, REF, None)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", text)
    ]
    caplog.clear()
    with caplog.at_level(logging.INFO, "kopf.objects"):
        lines.log(logging.DEBUG, "kopf.objects", text, None, REF, None)
    assert not caplog.records  # as in Kopf: there is one per object
