from crosslib import note

import kopf

STEPS = [["create", "one", {"spec": {"a": 1}}]]
EX = ("kopf.dev", "v1", "kopfexamples")


@kopf.on.create(*EX)
def fn(**_):
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {}}
    kopf.adopt(pod)
    kopf.label(pod, {"x": "y"})
    pod["metadata"]["ownerReferences"][0].pop("uid")
    pod["metadata"].pop("generateName", None)
    note(pod)
