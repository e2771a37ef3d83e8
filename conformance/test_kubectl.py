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


POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}


@pytest.mark.parametrize("command", [
    ("exec", "p", "--", "ls"),
    ("exec", "-i", "p", "-c", "c", "--", "sh"),
    ("attach", "p"),
    ("port-forward", "p", ":80"),
    ("cp", "p:/etc/hostname", "copied"),
])
def test_connections_to_pods_end_at_once_and_say_why(here, command, tmp_path):
    here("apply", "-f", "-", stdin=yaml.safe_dump(POD))
    here("wait", "--for=condition=Ready", "pod/p", "--timeout=20s")
    last = str(tmp_path / "copied")
    arguments = [last if argument == "copied" else argument for argument in command]
    with pytest.raises(AssertionError, match="is not emulated by this server: its pods run no processes and have no ports"):
        here(*arguments)


def test_ephemeral_containers_start(here):
    here("apply", "-f", "-", stdin=yaml.safe_dump(POD))
    here("wait", "--for=condition=Ready", "pod/p", "--timeout=20s")
    here("debug", "p", "--image=busybox:1", "--container=debugger", "--profile=general")
    state = "jsonpath={.status.ephemeralContainerStatuses[0].state}"
    eventually(lambda: "running" in here("get", "pod", "p", "-o", state))


def test_connections_to_pods_that_do_not_exist_say_so(here):
    with pytest.raises(AssertionError, match='pods "none" not found'):
        here("exec", "none", "--", "ls")
    with pytest.raises(AssertionError, match='pods "none" not found'):
        here("port-forward", "none", ":80")


def test_logs_are_what_the_annotation_says(here):
    written = {**POD, "metadata": {"name": "p", "annotations": {"kopf.dev/logs": "one\ntwo\n"}}}
    here("apply", "-f", "-", stdin=yaml.safe_dump(written))
    here("wait", "--for=condition=Ready", "pod/p", "--timeout=20s")
    assert here("logs", "p") == "one\ntwo\n"
    assert here("logs", "p", "--tail=1") == "two\n"
    assert here("logs", "p", "-c", "c", "-f") == "one\ntwo\n"
    with pytest.raises(AssertionError, match="container none is not valid for pod p"):
        here("logs", "p", "-c", "none")


def test_autoscalers_show_the_status_that_a_script_writes(here):
    here("create", "deployment", "web", "--image=nginx:1")
    here("autoscale", "deployment", "web", "--min=1", "--max=5", "--cpu-percent=80")
    assert "<unknown>/80%" in here("get", "hpa", "web"), "nobody measures anything"
    metric = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 120, "averageValue": "120m"}}}
    condition = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"currentReplicas": 2, "desiredReplicas": 3, "currentMetrics": [metric], "conditions": [condition]}
    here("patch", "hpa", "web", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    assert "120%/80%" in here("get", "hpa", "web")
    described = here("describe", "hpa", "web")
    assert "120% (120m) / 80%" in described and "2 current / 3 desired" in described
    assert "ReadyForNewScale" in described
    assert here("get", "horizontalpodautoscalers.v1.autoscaling", "web", "-o", "jsonpath={.status.currentCPUUtilizationPercentage}") == "120"
    with pytest.raises(AssertionError, match="must be greater than 0"):
        here("patch", "hpa", "web", "--type=merge", "-p", '{"spec":{"maxReplicas":0}}')
