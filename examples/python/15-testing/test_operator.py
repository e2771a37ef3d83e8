"""Tests with their own cluster, operator and clock: days take milliseconds."""

import pathlib
import runpy

import pytest

from kopf.testing import fault

SCRIPT = pathlib.Path(__file__).parent / "operator.py"
pytestmark = pytest.mark.asyncio


@pytest.fixture
def parcels(kopf_world):
    runpy.run_path(str(SCRIPT))  # registers the handlers
    return kopf_world.objects("parcels.v1.kopf.dev")


async def test_parcels_are_sent_when_the_post_office_opens(kopf_world, parcels):
    async with kopf_world.operator():
        parcels.create("book", spec={"failures": 2})
        await kopf_world.settled()
        assert "status" not in parcels.get("book")
        await kopf_world.advance(2 * 600)
        assert parcels.get("book")["status"]["send"] == {"attempts": 3}


async def test_senders_are_reminded_every_day(kopf_world, parcels):
    async with kopf_world.operator():
        parcels.create("book")
        await kopf_world.advance(3 * 24 * 3600 + 60)
        assert parcels.get("book")["status"]["days"] == 3


async def test_parcels_survive_an_outage(kopf_world, parcels):
    async with kopf_world.operator():
        kopf_world.fault(fault.on("parcels").patches().status(503).times(5))
        parcels.create("book")
        await parcels.until("book", lambda it: it.get("status", {}).get("send"))
        kopf_world.requests().patches().answered(503).assert_count(5)
