from crosslib import note

import kopf

STEPS = [
    ["create", "one", {"spec": {"a": 1}}],
    ["sleep", 3],
    ["patch", "one", {"spec": {"a": 2}}],
    ["sleep", 3],
]
# Kopf touches the object to wake itself up.
DIFFERS = ["objects"]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.progress_storage = kopf.StatusProgressStorage(field="status.p")
    settings.persistence.diffbase_storage = kopf.StatusDiffBaseStorage(field="status.d")


@kopf.on.create(*EX)
@kopf.on.update(*EX)
def fn(retry, reason, **_):
    note("fn", reason, retry)
    if retry < 1:
        raise kopf.TemporaryError("x", delay=1.5)
