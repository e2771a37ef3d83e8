"""Pykube with its own configuration; objects are changed and updated in threads."""

import pykube

import kopf

api = pykube.HTTPClient(pykube.KubeConfig.from_env())


@kopf.on.resume("volumes")
@kopf.on.create("volumes")
def ensure(body, name, namespace, spec, **_):
    data = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"size": str(spec.get("size"))},
    }
    child = pykube.ConfigMap(api, data)
    kopf.harmonize_naming(child, name)
    kopf.append_owner_reference(child, owner=body)
    if not child.exists():
        child.create()
    return {"child": child.name}


@kopf.on.update("volumes", field="spec.size")
def resize(name, namespace, new, retry, **_):
    if retry < 1:
        raise kopf.TemporaryError("not yet", delay=0.1)
    child = pykube.ConfigMap.objects(api, namespace=namespace).get_by_name(name)
    child.obj["data"]["size"] = str(new)
    child.update()
