import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.event(*EX)
def fn(type, patch, status, **_):
    if not status.get("seen"):
        patch.status["seen"] = True
