"""The Python client libraries, each in its own way of doing the same things."""

import threading

import kr8s
import kubernetes
import lightkube
import pykube
import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap

from conftest import eventually


def test_python_kubernetes_typed_and_watch(kubeconfig, namespace):
    kubernetes.config.load_kube_config(kubeconfig)
    api = kubernetes.client.CoreV1Api()
    body = {"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "v"}}
    seen = []

    def follow():
        watch = kubernetes.watch.Watch()
        for event in watch.stream(api.list_namespaced_config_map, namespace, timeout_seconds=5):
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                watch.stop()

    follower = threading.Thread(target=follow)
    follower.start()
    created = api.create_namespaced_config_map(namespace, body)
    assert created.metadata.uid
    patched = api.patch_namespaced_config_map("a", namespace, {"data": {"k": "w"}})
    assert patched.data == {"k": "w"}
    listed = api.list_namespaced_config_map(namespace, label_selector="x=y")
    assert [item.metadata.name for item in listed.items] == ["a"]
    api.replace_namespaced_config_map("a", namespace, patched)
    api.delete_namespaced_config_map("a", namespace)
    follower.join(timeout=10)
    assert ("ADDED", "a") in seen and ("DELETED", "a") in seen


def test_python_kubernetes_reports_conflicts(kubeconfig, namespace):
    kubernetes.config.load_kube_config(kubeconfig)
    api = kubernetes.client.CoreV1Api()
    api.create_namespaced_config_map(namespace, {"metadata": {"name": "a"}})
    with pytest.raises(kubernetes.client.ApiException) as caught:
        api.create_namespaced_config_map(namespace, {"metadata": {"name": "a"}})
    assert caught.value.status == 409


def test_python_kubernetes_custom_objects(kubeconfig, namespace, crd):
    kubernetes.config.load_kube_config(kubeconfig)
    api = kubernetes.client.CustomObjectsApi()
    where = ("kopf.dev", "v1", namespace, "kopfexamples")
    body = {"apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": {"name": "a"}, "spec": {}}
    api.create_namespaced_custom_object(*where, body)
    api.patch_namespaced_custom_object_status(*where, "a", {"status": {"x": 1}})
    assert api.get_namespaced_custom_object(*where, "a")["status"] == {"x": 1}
    api.delete_namespaced_custom_object(*where, "a")


def test_kr8s(kubeconfig, namespace):
    api = kr8s.api(kubeconfig=kubeconfig)
    config_map = kr8s.objects.ConfigMap(
        {"metadata": {"name": "a", "namespace": namespace}, "data": {"k": "v"}}, api=api
    )
    config_map.create()
    config_map.patch({"data": {"k": "w"}})
    config_map.refresh()
    assert config_map.data.k == "w"
    assert [item.name for item in api.get("configmaps", namespace=namespace) if item.name == "a"] == ["a"]
    config_map.delete()
    eventually(lambda: not config_map.exists())


def test_lightkube(kubeconfig, namespace, monkeypatch):
    client = lightkube.Client(config=lightkube.KubeConfig.from_file(kubeconfig), field_manager="lightkube")
    config_map = ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace), data={"k": "v"})
    client.create(config_map)
    client.patch(ConfigMap, "a", {"data": {"k": "w"}}, namespace=namespace)
    assert client.get(ConfigMap, "a", namespace=namespace).data == {"k": "w"}
    applied = client.apply(
        ConfigMap(metadata=ObjectMeta(name="b", namespace=namespace), data={"k": "v"})
    )
    assert applied.metadata.name == "b"
    names = {item.metadata.name for item in client.list(ConfigMap, namespace=namespace)}
    assert {"a", "b"} <= names
    client.delete(ConfigMap, "a", namespace=namespace)


def test_pykube(kubeconfig, namespace):
    api = pykube.HTTPClient(pykube.KubeConfig.from_file(kubeconfig))
    config_map = pykube.ConfigMap(
        api,
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": namespace},
            "data": {"k": "v"},
        },
    )
    config_map.create()
    config_map.obj["data"]["k"] = "w"
    config_map.update()
    config_map.reload()
    assert config_map.obj["data"] == {"k": "w"}
    names = {item.name for item in pykube.ConfigMap.objects(api).filter(namespace=namespace)}
    assert "a" in names
    config_map.delete()
