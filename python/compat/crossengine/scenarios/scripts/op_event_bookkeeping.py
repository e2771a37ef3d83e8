"""An operator of low-level events: bookkeeping in memos, patches with nothing, filters in pairs."""

from crosslib import note

import kopf

EX = ("kopf.dev", "v1", "kopfexamples")
STEPS = [
    ("create", "one", {"metadata": {"annotations": {"keep": "1", "drop": "1"}}, "spec": {"n": 1}}),
    ("patch", "one", {"metadata": {"annotations": {"pause": "yes"}}}),
    ("patch", "one", {"spec": {"n": 2, "extra": {"a": None, "b": [1, None]}}}),
    ("patch", "one", {"metadata": {"annotations": {"pause": None}}, "spec": {"n": None}}),
    ("restart",),
    ("delete", "one"),
]

# Kopf writes the patch of an event on its own, and gets one event more.
DIFFERS = ["lines"]


def large(value, **_):
    # Kopf passes a value of its own class if there is none.
    return isinstance(value, int) and value > 1


@kopf.on.event(*EX)
def book(type, memo: kopf.Memo, spec, name, patch, **_):
    memo.seen = memo.get("seen", 0) + 1
    if spec.get("n") != memo.get("n", "nothing"):
        memo.n = spec.get("n")
        note("event", type, name, dict(spec))
    if "drop" in _["annotations"]:
        patch.metadata.annotations["drop"] = None
        patch.status["dropped"] = True
        patch.status["nothing"] = None


@kopf.on.event(*EX, annotations={"pause": kopf.PRESENT}, when=kopf.not_(lambda type, **_: type is None))
def paused(memo, name, **_):
    if not memo.setdefault("was_paused", False):
        memo.was_paused = True
        note("paused", name)


@kopf.on.event(*EX, field="spec.n", value=large)
def big(spec, **_):
    raise ValueError(f"{spec['n']} is too much")


@kopf.on.create(*EX, annotations={"pause": kopf.ABSENT})
@kopf.on.update(*EX, annotations={"pause": kopf.ABSENT, "keep": kopf.PRESENT})
@kopf.on.resume(*EX, annotations={"pause": kopf.ABSENT})
def work(reason, diff, name, **_):
    note("work", reason, name, sorted(list(map(repr, item)) for item in diff))


@kopf.on.update(*EX, field="spec.n", value=kopf.ABSENT)
def vanished(old, new, **_):
    note("vanished", old, new)


@kopf.on.field(*EX, field="spec.extra")
def extra(old, new, diff, **_):
    note("extra", repr(old), repr(new))
