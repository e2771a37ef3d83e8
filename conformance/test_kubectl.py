"""The commands that people type all day."""

import json

import pytest
import yaml

from conftest import eventually

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx:1"}]},
        },
    },
}

EXAMPLE = {
    "apiVersion": "kopf.dev/v1",
    "kind": "KopfExample",
    "metadata": {"name": "one"},
    "spec": {"field": "value"},
}


@pytest.fixture
def here(kubectl, namespace):
    return lambda *arguments, **options: kubectl("-n", namespace, *arguments, **options)


def test_configmaps_are_created_read_patched_and_deleted(here):
    here("create", "configmap", "a", "--from-literal=k=v")
    assert here("get", "cm", "a", "-o", "jsonpath={.data.k}") == "v"
    here("patch", "cm", "a", "-p", '{"data":{"k":"w"}}')
    here("label", "cm", "a", "x=y")
    here("annotate", "cm", "a", "p=q")
    assert "a" in here("get", "cm", "-l", "x=y", "-o", "name")
    here("delete", "cm", "a")
    assert here("get", "cm", "a", "--ignore-not-found") == ""


def test_apply_twice_says_unchanged(here):
    text = yaml.safe_dump(DEPLOYMENT)
    assert "created" in here("apply", "-f", "-", stdin=text)
    assert "unchanged" in here("apply", "-f", "-", stdin=text)
    changed = text.replace("nginx:1", "nginx:2")
    assert "configured" in here("apply", "-f", "-", stdin=changed)
    assert "web" in here("diff", "-f", "-", stdin=text, check=False)


def test_server_side_apply_reports_conflicts(here, kubectl):
    one = yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "1"}})
    here("apply", "--server-side", "--field-manager=m1", "-f", "-", stdin=one)
    with pytest.raises(AssertionError, match='conflict with "m1"'):
        here("apply", "--server-side", "--field-manager=m2", "-f", "-", stdin=one.replace("'1'", "'2'"))
    here("apply", "--server-side", "--force-conflicts", "--field-manager=m2", "-f", "-", stdin=one.replace("'1'", "'2'"))
    assert here("get", "cm", "c", "-o", "jsonpath={.data.k}") == "2"


def test_custom_resources_have_columns_and_explanations(here, crd):
    here("apply", "-f", "-", stdin=yaml.safe_dump(EXAMPLE))
    table = here("get", "kex")
    assert "FIELD" in table and "value" in table
    assert "KopfExample" in here("explain", "kex")
    assert "Name:" in here("describe", "kex", "one")
    here("delete", "kex", "one", "--timeout=20s")


def test_discovery_and_access(here, kubectl):
    assert "deployments" in kubectl("api-resources")
    assert "apps/v1" in kubectl("api-versions")
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert json.loads(kubectl("version", "-o", "json"))["serverVersion"]["major"] == "1"


def test_namespaces_come_with_an_account_and_go_with_their_content(here, kubectl, namespace):
    here("create", "secret", "generic", "s", "--from-literal=a=b")
    eventually(lambda: "serviceaccount/default" in here("get", "serviceaccounts", "-o", "name"))
    assert namespace in kubectl("get", "ns", "-o", "name")
    kubectl("delete", "namespace", namespace, "--timeout=30s")
    assert kubectl("get", "ns", namespace, "--ignore-not-found") == ""
    kubectl("create", "namespace", namespace)
