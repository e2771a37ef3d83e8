"""Children: adopted, labelled, renamed; lists of them, nested templates; owners removed."""

from crosslib import note

import kopf

STEPS = [("create", "one", {"metadata": {"labels": {"app": "x", "tier": "y"}}, "spec": {}})]


def show(obj):
    meta = {k: v for k, v in obj.get("metadata", {}).items() if k != "ownerReferences"}
    owners = [
        {k: v for k, v in ref.items() if k != "uid"}
        for ref in obj.get("metadata", {}).get("ownerReferences", [])
    ]
    template = obj.get("spec", {}).get("template", {})
    return {"meta": meta, "owners": owners, "template": template}


@kopf.on.create("kopfexamples")
def create(body, meta, **_):
    pod = {"kind": "Pod", "metadata": {"labels": {"app": "own"}}}
    job = {"kind": "Job", "spec": {"template": {"metadata": {}, "spec": {}}}}
    kopf.adopt([pod, job])
    note("adopted", show(pod), show(job))
    kopf.adopt(pod, owner=body, strict=True, forced=True, nested=["spec.template"])
    note("forced", show(pod))
    kopf.label(job, nested="spec.template")
    note("nested", show(job))
    kopf.label(job, {"app": "forced"}, forced=True)
    kopf.label([job], {"app": "ignored", "more": "1"})
    note("labels", show(job))
    kopf.remove_owner_reference(job)
    note("removed", show(job))
    kopf.append_owner_reference(job, controller=False, block_owner_deletion=False)
    note("appended", show(job))
    other = {"metadata": {"name": "kept", "namespace": "kept"}}
    kopf.harmonize_naming(other)
    kopf.adjust_namespace(other)
    note("kept", show(other))
    kopf.harmonize_naming(other, "exact", strict=True, forced=True)
    kopf.adjust_namespace(other, None, forced=True)
    note("exact", show(other))
    named = {}
    kopf.harmonize_naming(named, strict=False)
    note("generated", show(named))
    try:
        kopf.adopt(object())
    except TypeError as e:
        note("error", str(e))
    try:
        kopf.label(pod, "text")
    except Exception as e:
        note("error", type(e).__name__)
