"""What all handlers on the Kopf side of the cross-check share: the settings, and the notes of calls.

Every call is noted in the file $CALLS. A handler is held back, that is, fails temporarily, for as long
as there is a file of its name in the folder $HOLD.
"""

import json
import os
from pathlib import Path

import kopf

from compact_storage import CompactDiffBaseStorage

KIND = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.startup()
def configure(settings, **_):
    settings.watching.server_timeout = 30
    settings.posting.loggers = "LOGGERS" in os.environ
    match os.environ.get("STORAGE", "default"):
        case "status":
            settings.persistence.progress_storage = kopf.StatusProgressStorage(name="myop")
            settings.persistence.diffbase_storage = kopf.StatusDiffBaseStorage(name="myop")
        case "prefix":
            prefix = "my-op.example.com"
            settings.persistence.finalizer = f"{prefix}/finalizer"
            settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=prefix)
            settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
                prefix=prefix, key="last"
            )
        case "compact":
            settings.persistence.diffbase_storage = CompactDiffBaseStorage()
        case "multi":
            prefix = "my-op.example.com"
            settings.persistence.progress_storage = kopf.MultiProgressStorage([
                kopf.AnnotationsProgressStorage(prefix=prefix),
                kopf.StatusProgressStorage(name="myop"),
            ])
            settings.persistence.diffbase_storage = kopf.MultiDiffBaseStorage([
                kopf.AnnotationsDiffBaseStorage(prefix=prefix, key="last"),
                kopf.StatusDiffBaseStorage(name="myop"),
            ])


def note(handler, retry, reason):
    with open(os.environ["CALLS"], "a") as calls:
        calls.write(json.dumps([handler, retry, str(reason.value)]) + "\n")
    if (Path(os.environ["HOLD"]) / handler.replace("/", ".")).exists():
        raise kopf.TemporaryError("held back", delay=0.2)
