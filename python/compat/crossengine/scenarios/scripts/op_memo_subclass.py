"""Memos with locks and objects of custom classes."""

import asyncio
import dataclasses

from crosslib import note

import kopf

STEPS = [
    ("create", "one", {"spec": {"x": 1}}),
    ("patch", "one", {"spec": {"x": 2}}),
    ("create", "two", {"spec": {"x": 5}}),
    ("delete", "one"),
]


@dataclasses.dataclass
class Counter:
    total: int = 0

    def add(self, value):
        self.total += value
        return self.total


@kopf.on.startup()
async def startup(memo: kopf.Memo, **_):
    memo.counter = Counter()
    memo["lock"] = asyncio.Lock()
    note("memo", type(memo).__name__, sorted(memo), "counter" in memo)


@kopf.on.create("kopfexamples")
@kopf.on.update("kopfexamples")
async def change(memo, spec, name, **_):
    async with memo.lock:
        total = memo.counter.add(spec["x"])
    memo.own = memo.get("own", 0) + 1
    note(name, total, memo.own, sorted(memo))


@kopf.on.delete("kopfexamples")
def delete(memo, name, **_):
    note("gone", name, memo.own)
    del memo.own
    try:
        note("never", memo.own)
    except AttributeError as e:
        note("error", str(e))
