"""Lines of the engine in Python's logging."""

from __future__ import annotations

import logging
import time

import pytest

import kopf
from kopf._engine import logs
from kopf._engine.logs import Lines

from .conftest import eventually

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


@pytest.mark.parametrize(
    "text, expected",
    [
        ("v1/pods", "Selector(group='', version='v1', any_name='pods')"),
        ("*/*/kind=Pod", "Selector(kind='Pod')"),
        ("kopf.dev/v1/*", "kopf.dev/v1/*"),
        ("pods", "pods"),
        ("a/b/c/d", "a/b/c/d"),
    ],
)
def test_selectors_are_written_as_in_kopf(text: str, expected: str) -> None:
    line = "Unresolved resources cannot be served (try creating their CRDs): "
    assert logs._with_selectors(line + text) == line + expected


@pytest.mark.asyncio
async def test_timers_that_wait_end_with_a_line_about_their_object(
    examples, kopf_operator, caplog: pytest.LogCaptureFixture
) -> None:
    calls = []

    @kopf.timer("kopf.dev", "v1", "kopfexamples", interval=1000, id="fn")
    async def fn(**_):
        calls.append(True)

    with caplog.at_level(logging.DEBUG, "kopf.objects"):
        async with kopf_operator():
            examples.create()
            await eventually(lambda: calls)
    (ended,) = [record for record in caplog.records if "has exited" in record.getMessage()]
    assert vars(ended)["k8s_ref"]["name"] == "one"


@pytest.mark.asyncio
async def test_lines_about_the_end_of_daemons_are_about_their_object(
    examples, kopf_operator, caplog: pytest.LogCaptureFixture
) -> None:
    calls = []

    @kopf.daemon("kopf.dev", "v1", "kopfexamples", cancellation_timeout=0.1, id="fn")
    def fn(**_):
        calls.append(True)
        time.sleep(1)  # it ignores the flag

    with caplog.at_level(logging.DEBUG, "kopf.objects"):
        async with kopf_operator():
            examples.create()
            await eventually(lambda: calls)
    (orphaned,) = [record for record in caplog.records if "did not exit" in record.getMessage()]
    assert (orphaned.name, vars(orphaned)["k8s_ref"]["name"]) == ("kopf.objects", "one")
