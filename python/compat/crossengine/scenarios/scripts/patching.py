import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
def fn(patch, **_):
    patch.spec["b"] = 2
    patch.status["s"] = {"t": 1}
    patch.metadata.labels["l"] = "v"
    patch.metadata.annotations["an"] = "v"
