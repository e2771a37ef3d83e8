"""What is observed of a run, without what differs between any two runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from crossengine.groups import Group, Scenario
from kopf._engine.cluster import EmbeddedCluster

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
RUNTIME = re.compile(r"\d+:\d\d:\d\d(\.\d+)?")
# Kopf describes the peers in detail, and how they are gone; ours are named.
PEERS = re.compile(r"(in favour of|with the same priority:|including self:?) ?\[.*\]\.?$")
GONE = re.compile(r"^(Resuming operations after the pause\.).*")
PORT = re.compile(r"(localhost|127\.0\.0\.1):\d+")
SCRUBBED = (
    (PEERS, r"\1 PEERS"),
    (GONE, r"\1"),
    (ISO, "TIME"),
    (UID, "UID"),
    (RUNTIME, "RUNTIME"),
    (PORT, r"\1:PORT"),
)
VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "deletionTimestamp")

COMPARED = re.compile(
    r"^(Handler|Daemon|Timer|Indexer|Activity|Webhook) '.*' (is|succeeded|failed|has|did)"
    r"|^(Creation|Updating|Deletion|Resuming) (is processed|is superseded)"
    r"|^(Adding|Removing) the finalizer|^Deleted, really|^Deletion, but"
    r"|^Throttling for|^Throttling is over|^note: "
    r"|^(Pausing|Resuming) operations|^Possibly conflicting|^Pausing all operators"
)
# Lines that depend on who is faster, or on the echo of own writes, which we do not handle.
RACING = re.compile(r" is still exiting\.|^Timer '.*' has exited |login_")
# Kopf says this about its own touch key, depending on the timing.
INCONSISTENT = "finished with inconsistencies"


def scrub(text: str) -> str:
    """Remove what differs between any two runs."""
    for pattern, word in SCRUBBED:
        text = pattern.sub(word, text)
    return text


def clean(body: dict[str, Any], *, script: bool = False) -> Any:
    """Prepare an object for the comparison."""
    dropped = (*VOLATILE, "generation") if script else VOLATILE
    meta = {k: v for k, v in body.get("metadata", {}).items() if k not in dropped}
    return json.loads(scrub(json.dumps(body | {"metadata": meta}, sort_keys=True)))


def parse_log(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def observe(
    group: Group,
    cluster: EmbeddedCluster,
    calls: list[dict[str, Any]],
    logs: dict[str, list[dict[str, Any]]],
    responses: dict[str, list[str]],
) -> dict[str, dict[str, Any]]:
    """Collect what is compared, by scenarios."""
    events = cluster.request("GET", "/api/v1/namespaces/default/events")["items"]
    result: dict[str, dict[str, Any]] = {}
    for scenario in group.scenarios:
        items = cluster.request("GET", scenario.collection)["items"]
        result[scenario.name] = {
            "objects": [clean(body, script=group.is_script) for body in items],
            "calls": _calls(group, scenario, calls),
            "events": sorted(_events(scenario, events)),
            "responses": [scrub(text) for text in responses.get(scenario.name, ())],
        }
        if group.is_script:
            lines = {name: sorted(_lines(parsed)) for name, parsed in logs.items()}
            result[scenario.name]["lines"] = lines
        else:
            (everything,) = logs.values()
            result[scenario.name]["logs"] = list(_messages(scenario, everything))
    return result


def _calls(group: Group, scenario: Scenario, calls: Iterable[dict[str, Any]]) -> list[str]:
    wanted = "" if group.is_script else scenario.name
    chosen = [[call["handler"], call["facts"]] for call in calls if call["kind"] == wanted]
    texts = [scrub(json.dumps(call, sort_keys=True)) for call in chosen]
    return sorted(texts) if scenario.has_races else texts


def _events(scenario: Scenario, events: Iterable[dict[str, Any]]) -> list[str]:
    return [
        f"{e['type']} {e['reason']} {e['involvedObject']['name']} {scrub(e.get('message') or '')}"
        for e in events
        if e["involvedObject"]["kind"] == scenario.kind
    ]


def _messages(scenario: Scenario, lines: Iterable[dict[str, Any]]) -> list[str]:
    """The messages about the objects of a scenario, in order."""
    return [
        f"{line['severity']}: {scrub(line['message'])}"
        for line in lines
        if (line.get("object") or {}).get("kind") == scenario.kind
        and line["severity"] != "debug"
        and INCONSISTENT not in line["message"]
    ]


def _lines(lines: Iterable[dict[str, Any]]) -> list[str]:
    """The messages about everything. Different things are in different tasks: without order."""
    kept: list[str] = []
    for line in lines:
        message = scrub(line["message"])
        if not COMPARED.search(message) or RACING.search(message):
            continue
        # Kopf may ask for the same removal again.
        if " the finalizer" not in message or message not in kept:
            kept.append(message)
    return kept
