"""The official client, configured by Kopf's default login only; children are adopted."""

import kubernetes
import yaml

import kopf

TEMPLATE = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: "{name}"
spec:
  accessModes: [ReadWriteOnce]
  resources: {{requests: {{storage: "{size}"}}}}
"""


@kopf.on.create("volumes")
def create_fn(spec, name, namespace, logger, **kwargs):
    size = spec.get("size")
    if not size:
        raise kopf.PermanentError(f"Size must be set. Got {size!r}.")
    data = yaml.safe_load(TEMPLATE.format(name=name, size=size))
    kopf.adopt(data)
    api = kubernetes.client.CoreV1Api()
    obj = api.create_namespaced_persistent_volume_claim(namespace=namespace, body=data)
    logger.info(f"PVC child is created: {obj.metadata.name}")
    return {"pvc-name": obj.metadata.name}


@kopf.on.field("volumes", field="metadata.labels")
def relabel(new, status, namespace, **kwargs):
    labels = dict(new or {})
    name = status.get("create_fn", {}).get("pvc-name")
    if name:
        api = kubernetes.client.CoreV1Api()
        patch = {"metadata": {"labels": labels}}
        api.patch_namespaced_persistent_volume_claim(namespace=namespace, name=name, body=patch)
