"""Several clients in one operator: the official one by the default login, kr8s, pykube."""

import kr8s.asyncio.objects
import kubernetes
import pykube
from crosslib import note

import kopf

STEPS = [
    ("create", "one", {"spec": {"x": "1"}}),
    ("patch", "one", {"spec": {"x": "2"}}),
    ("delete", "one"),
]


@kopf.on.create("kopfexamples")
async def with_kr8s(name, namespace, spec, **_):
    data = {"metadata": {"name": f"{name}-kr8s", "namespace": namespace}, "data": dict(spec)}
    kopf.adopt(data)
    config = await kr8s.asyncio.objects.ConfigMap(data)
    await config.create()
    note("kr8s", await config.exists(), config.raw["metadata"]["ownerReferences"][0]["name"])


@kopf.on.update("kopfexamples")
def with_kubernetes(name, namespace, spec, **_):
    api = kubernetes.client.CoreV1Api()
    found = api.read_namespaced_config_map(f"{name}-kr8s", namespace)
    found.data = dict(spec)
    note(
        "kubernetes", api.replace_namespaced_config_map(found.metadata.name, namespace, found).data
    )
    custom = kubernetes.client.CustomObjectsApi()
    got = custom.get_namespaced_custom_object("kopf.dev", "v1", namespace, "kopfexamples", name)
    note("custom", got["spec"])


@kopf.on.delete("kopfexamples")
def with_pykube(name, namespace, **_):
    api = pykube.HTTPClient(pykube.KubeConfig.from_env())
    config = pykube.ConfigMap.objects(api).filter(namespace=namespace).get(name=f"{name}-kr8s")
    note("pykube", config.obj["data"], config.name)
    config.delete()
