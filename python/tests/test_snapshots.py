"""The settings of fast restarts, as the engine gets them."""

from __future__ import annotations

import dataclasses
import json

from kopf._engine.declaring import describe_settings
from kopf._settings.configuration import OperatorSettings
from kopf._settings.progress import StatusProgressStorage


class OwnStorage(StatusProgressStorage):
    """A storage that only Python knows."""


def test_snapshots_are_off_by_default() -> None:
    described = describe_settings(OperatorSettings())
    assert "snapshots.file" not in described
    assert described["snapshots.interval"] == 60


def test_snapshots_are_no_field_of_kopfs_settings() -> None:
    assert "snapshots" not in {field.name for field in dataclasses.fields(OperatorSettings)}


def test_stock_storages_are_identified() -> None:
    settings = OperatorSettings()
    settings.snapshots.file = "snapshot"
    described = describe_settings(settings)
    assert described["snapshots.file"] == "snapshot"
    storages = json.loads(described["snapshots.storages"])
    assert [storage["type"] for storage in storages] == ["smart", "annotations"]
    settings.persistence.progress_storage = StatusProgressStorage()
    assert describe_settings(settings)["snapshots.storages"] != described["snapshots.storages"]


def test_storages_of_others_are_identified_by_them() -> None:
    settings = OperatorSettings()
    settings.persistence.progress_storage = OwnStorage()
    assert "snapshots.storages" not in describe_settings(settings)
    settings.snapshots.storages = "v1"
    assert describe_settings(settings)["snapshots.storages"] == "v1"
