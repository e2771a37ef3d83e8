from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}], ["delete", "one"]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.finalizer = "my.org/fin"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="my.org")
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
        prefix="my.org", key="last"
    )


@kopf.on.create(*EX)
def create(**_):
    note("create")


@kopf.on.delete(*EX)
def delete(**_):
    note("delete")
