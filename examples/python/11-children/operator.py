"""Children of an object, created with the official client, which Kopf's login configures."""

import kopf
import kubernetes


@kopf.on.create("kopf.dev", "v1", "sites")
def create_pages(spec, **_):
    children = []
    for page, text in spec["pages"].items():
        child = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"labels": {"page": page}},
            "data": {"text": text},
        }
        kopf.adopt(child)
        children.append(child)
    api = kubernetes.client.CoreV1Api()
    made = [api.create_namespaced_config_map(c["metadata"]["namespace"], c) for c in children]
    return {"pages": len(made)}
