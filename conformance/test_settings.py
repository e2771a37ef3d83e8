"""Our settings beside those of Kopf from PyPI: the same names and defaults, but for what is listed here.

`settings.json` is what `cargo test -p kopf-core settings` proves to be our defaults.
"""

import dataclasses
import json
import logging
import warnings

import kopf

from conftest import HERE

# What Kopf has and we have in another form, with the reason.
ELSEWHERE = {
    "admission.server": "an endpoint given to the operator, not a setting",
    "admission.managed": "the name of the operator",
    "execution.executor": "blocking functions run on the pool of the runtime",
}

# What is not the same by default, with the reason.
DIFFERENT = {
    "watching.chunk_size": "whole lists are never in memory",
    "execution.max_workers": "threads of Python are limited by the executor: min(32, processors + 4)",
    "persistence.progress_storage": "compared by class, see test_storages_are_of_the_same_kind",
    "persistence.diffbase_storage": "compared by class, see test_storages_are_of_the_same_kind",
}

# What only we have.
OURS = {
    "admission.exempt_own_namespace",
    "background.timer_spread_max",
    "execution.max_workers",
    "execution.rerun_outdated",
    "networking.concurrent_writes_max",
    "persistence.field_manager",
    "persistence.persist_after",
    "posting.count_repeated",
    "posting.handlers",
    "posting.queue_max",
    "posting.rate_per_second",
    "serving.body_timeout",
    "serving.buffered_bytes_max",
    "serving.connections_max",
    "serving.conversion_bytes_max",
    "serving.handshake_timeout",
    "serving.head_bytes_max",
    "serving.head_timeout",
    "serving.idle_timeout",
    "serving.liveness_timeout",
    "serving.reserved_files",
    "serving.review_bytes_max",
    "serving.write_timeout",
    "watching.backlog_max",
    "watching.managed_fields",
    "watching.reconnect_backoff_max",
}


def plain(value):
    """The value as it is in JSON."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if hasattr(value, "items"):
        return dict(value.items())
    return value


def theirs():
    found = {}
    for group in dataclasses.fields(kopf.OperatorSettings()):
        for field in dataclasses.fields(getattr(kopf.OperatorSettings(), group.name)):
            value = getattr(getattr(kopf.OperatorSettings(), group.name), field.name)
            if not field.name.startswith("_"):
                found[f"{group.name}.{field.name}"] = value
    found["posting.level"] = logging.getLevelName(found["posting.level"]).lower()
    return found


def ours():
    table = json.loads((HERE / "settings.json").read_text())
    return {f"{group}.{name}": value for group in table for name, value in table[group].items()}


def test_all_names_of_kopf_are_ours():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        missing = set(theirs()) - set(ours())
    assert missing == set(ELSEWHERE)


def test_what_only_we_have_is_listed():
    assert set(ours()) - set(theirs()) == OURS


def test_defaults_are_the_same():
    mine, his = ours(), theirs()
    different = {name for name in his.keys() & mine.keys() if mine[name] != plain(his[name])}
    assert different == set(DIFFERENT) - OURS, {
        name: (mine[name], his[name]) for name in different - set(DIFFERENT)
    }


def test_storages_are_of_the_same_kind():
    mine, his = ours(), theirs()
    assert isinstance(his["persistence.progress_storage"], kopf.SmartProgressStorage)
    assert mine["persistence.progress_storage"] == "Smart(kopf.zalando.org, kopf)"
    # The compact form is Kopf's own as long as it fits.
    assert isinstance(his["persistence.diffbase_storage"], kopf.AnnotationsDiffBaseStorage)
    key = "kopf.zalando.org/last-handled-configuration"
    assert mine["persistence.diffbase_storage"] == f"Compact({key})"
