import os

from crosslib import note

import kopf

STEPS = [
    ["create", "one", {"spec": {"a": 1, "junk": True}}],
    ["patch", "one", {"spec": {"a": 2}}],
    ["create", "two", {"spec": {"a": 5}, "metadata": {"labels": {"x": "y"}}}],
    ["delete", "one"],
]
RACES = True
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.startup()
def configure(settings, **_):
    folder = os.environ["CROSS_CERTIFICATES"]
    files = {"certfile": f"{folder}/cert.pem", "pkeyfile": f"{folder}/pkey.pem"}
    settings.admission.managed = "auto.kopf.dev"
    settings.admission.server = kopf.WebhookServer(host="localhost", path="/hooks", **files)


@kopf.on.mutate(*EX)
def default(spec, patch, operation, **_):
    note("default", operation, dict(spec))
    patch.spec["b"] = spec.get("a", 0) + 1
    patch.metadata.labels["seen/by"] = "us"
    if spec.get("junk"):
        patch.spec["junk"] = None


@kopf.on.mutate(*EX, operations=["CREATE"], labels={"x": "y"}, id="labelled", ignore_failures=True)
async def labelled(patch, old, new, diff, **_):
    note("labelled", old, sorted(new["spec"]), [str(op) for op, *_ in diff])
    patch.status["mutated"] = True


@kopf.on.create(*EX)
@kopf.on.update(*EX)
def handled(spec, reason, **_):
    note("handled", str(reason), dict(spec))
    return "done"
