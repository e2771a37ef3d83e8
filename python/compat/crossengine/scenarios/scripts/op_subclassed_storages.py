"""Custom storages: subclasses that log and rename, and one that keeps all in the status."""

import json

from crosslib import note

import kopf

STEPS = [
    ("create", "one", {"spec": {"field": 1, "ignored": 1}}),
    ("patch", "one", {"spec": {"ignored": 2}}),
    ("patch", "one", {"spec": {"field": 2}}),
    ("delete", "one"),
]


class DiffBase(kopf.AnnotationsDiffBaseStorage):
    def build(self, *, body, extra_fields=None):
        essence = super().build(body=body, extra_fields=extra_fields)
        essence.get("spec", {}).pop("ignored", None)
        return essence


class Progress(kopf.ProgressStorage):
    def fetch(self, *, key, body):
        text = body.status.get("records", {}).get(key)
        return json.loads(text) if text else None

    def store(self, *, key, record, body, patch):
        patch.status.setdefault("records", {})[key] = json.dumps(
            {k: v for k, v in record.items() if v is not None and k in ("retries", "success")}
        )

    def purge(self, *, key, body, patch):
        if key in body.status.get("records", {}):
            patch.status.setdefault("records", {})[key] = None
        elif key in patch.status.get("records", {}):
            del patch.status["records"][key]

    def touch(self, *, body, patch, value):
        pass

    def clear(self, *, essence):
        essence = super().clear(essence=essence)
        essence.get("status", {}).pop("records", None)
        return essence


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.persistence.diffbase_storage = DiffBase(prefix="my.dev", key="last", v1=False)
    settings.persistence.progress_storage = Progress()
    settings.persistence.finalizer = "my.dev/keep"


@kopf.on.create("kopfexamples")
def create(retry, **_):
    note("create", retry)
    if not retry:
        raise kopf.TemporaryError("later", delay=0.2)


@kopf.on.update("kopfexamples")
def update(diff, **_):
    note("update", [list(item) for item in diff])


@kopf.on.delete("kopfexamples")
def delete(**_):
    note("delete")
