"""Storages that write nothing to objects, for operators that may not patch them."""

import copy

from crosslib import note

import kopf

STEPS = [
    ("create", "one", {"spec": {"field": 1}}),
    ("patch", "one", {"spec": {"field": 2}}),
    ("patch", "one", {"status": {"x": "y"}}),
]


class NoProgress(kopf.ProgressStorage):
    def fetch(self, **kwargs):
        return None

    def store(self, **kwargs):
        pass

    def purge(self, **kwargs):
        pass

    def touch(self, **kwargs):
        pass

    def clear(self, *, essence):
        return super().clear(essence=essence)


class MemoryDiffBase(kopf.DiffBaseStorage):
    def __init__(self):
        super().__init__()
        self.known = {}

    def fetch(self, *, body):
        return copy.deepcopy(self.known.get(body.metadata.uid))

    def store(self, *, body, patch, essence):
        self.known[body.metadata.uid] = copy.deepcopy(essence)


@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.progress_storage = NoProgress()
    settings.persistence.diffbase_storage = MemoryDiffBase()
    settings.posting.enabled = False


@kopf.on.create("kopfexamples")
@kopf.on.update("kopfexamples")
def changed(reason, spec, diff, **_):
    note("changed", reason, dict(spec), [list(item) for item in diff])
