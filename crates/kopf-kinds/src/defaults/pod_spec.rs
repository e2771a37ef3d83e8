//! Defaults of pods and pod templates.

use serde_json::{Map, Value, json};

use crate::fields::{fill, fill_number, fill_text, is_empty, items_mut, object_mut, present_mut};
use crate::quantity::Quantity;

const FILE_MODE: i64 = 0o644;

const CONTAINER_LISTS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// A pod has a few more defaults than a template.
pub(super) fn pod(object: &mut Value) {
    let Some(spec) = object_mut(object, "spec") else { return };
    self::spec(spec);
    fill(spec, "enableServiceLinks", true);
    let is_on_host = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, list) {
            limits_become_requests(container);
            if is_on_host {
                host_ports(container);
            }
        }
    }
}

/// A pod template: `metadata` and `spec`.
pub(super) fn template(template: &mut Value) {
    if let Some(spec) = object_mut(template, "spec") {
        self::spec(spec);
    }
}

fn spec(spec: &mut Value) {
    fill_text(spec, "dnsPolicy", "ClusterFirst");
    fill_text(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill_text(spec, "schedulerName", "default-scheduler");
    // The deprecated field follows the newer one.
    let account = spec.get("serviceAccountName").cloned();
    match account {
        Some(account) if account != "" => spec["serviceAccount"] = account,
        _ => {
            if let Some(account) = spec.get("serviceAccount").cloned() {
                spec["serviceAccountName"] = account;
            }
        }
    }
    items_mut(spec, "volumes").for_each(volume);
    for list in CONTAINER_LISTS {
        items_mut(spec, list).for_each(container);
    }
}

fn limits_become_requests(container: &mut Value) {
    let Some(resources) = present_mut(container, "resources") else { return };
    let limits: Map<String, Value> =
        resources.get("limits").and_then(Value::as_object).cloned().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    if let Some(requests) = object_mut(resources, "requests") {
        limits.into_iter().for_each(|(name, amount)| fill(requests, &name, amount));
    }
}

fn host_ports(container: &mut Value) {
    for port in items_mut(container, "ports") {
        if let Some(number) = port.get("containerPort").and_then(Value::as_i64) {
            fill_number(port, "hostPort", number);
        }
    }
}

/// Rounds resource amounts up to thousandths.
pub(super) fn round_up(amounts: Option<&mut Value>) {
    for (_, amount) in amounts.and_then(Value::as_object_mut).into_iter().flatten() {
        if let Some(exact) = amount.as_str().and_then(Quantity::parse)
            && exact.in_thousandths() != exact
        {
            *amount = exact.in_thousandths().canonical().into();
        }
    }
}

fn container(container: &mut Value) {
    for list in ["limits", "requests"] {
        round_up(container.pointer_mut(&format!("/resources/{list}")));
    }
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let pull_policy = if has_latest_tag(image) { "Always" } else { "IfNotPresent" };
    fill_text(container, "imagePullPolicy", pull_policy);
    fill_text(container, "terminationMessagePath", "/dev/termination-log");
    fill_text(container, "terminationMessagePolicy", "File");
    items_mut(container, "ports").for_each(|port| fill_text(port, "protocol", "TCP"));
    for variable in items_mut(container, "env") {
        if let Some(source) = present_mut(variable, "valueFrom") {
            field_reference(source);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = present_mut(container, name) {
            self::probe(probe);
        }
    }
    if let Some(lifecycle) = present_mut(container, "lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(action) = present_mut(lifecycle, name) {
                http_get(action);
            }
        }
    }
}

/// Whether the image has the tag `latest` or no tag, and no digest.
fn has_latest_tag(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let name = image.rsplit('/').next().unwrap_or(image);
    name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn probe(probe: &mut Value) {
    fill_number(probe, "timeoutSeconds", 1);
    fill_number(probe, "periodSeconds", 10);
    fill_number(probe, "successThreshold", 1);
    fill_number(probe, "failureThreshold", 3);
    http_get(probe);
    if let Some(grpc) = present_mut(probe, "grpc") {
        fill(grpc, "service", "");
    }
}

fn http_get(action: &mut Value) {
    if let Some(http_get) = present_mut(action, "httpGet") {
        fill_text(http_get, "path", "/");
        fill_text(http_get, "scheme", "HTTP");
    }
}

fn field_reference(source: &mut Value) {
    if let Some(reference) = present_mut(source, "fieldRef") {
        fill_text(reference, "apiVersion", "v1");
    }
}

fn volume(volume: &mut Value) {
    let has_source = volume
        .as_object()
        .is_some_and(|fields| fields.iter().any(|(key, value)| key != "name" && !value.is_null()));
    if !has_source {
        fill(volume, "emptyDir", json!({}));
    }
    volume_source(volume);
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = present_mut(volume, name) {
            fill(source, "defaultMode", FILE_MODE);
            items_mut(source, "items").for_each(field_reference);
        }
    }
    if let Some(projected) = present_mut(volume, "projected") {
        for source in items_mut(projected, "sources") {
            if let Some(token) = present_mut(source, "serviceAccountToken") {
                fill(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = present_mut(source, "downwardAPI") {
                items_mut(downward, "items").for_each(field_reference);
            }
        }
    }
    if let Some(template) = present_mut(volume, "ephemeral")
        .and_then(|ephemeral| present_mut(ephemeral, "volumeClaimTemplate"))
        && let Some(spec) = object_mut(template, "spec")
    {
        fill(spec, "volumeMode", "Filesystem");
    }
}

/// Defaults of the volume sources that pods and persistent volumes share.
pub(super) fn volume_source(volume: &mut Value) {
    if let Some(source) = present_mut(volume, "hostPath") {
        fill(source, "type", "");
    }
    if let Some(source) = present_mut(volume, "iscsi") {
        fill_text(source, "iscsiInterface", "default");
    }
    if let Some(source) = present_mut(volume, "rbd") {
        fill_text(source, "pool", "rbd");
        fill_text(source, "user", "admin");
        fill_text(source, "keyring", "/etc/ceph/keyring");
    }
    if let Some(source) = present_mut(volume, "azureDisk") {
        fill(source, "cachingMode", "ReadWrite");
        fill(source, "fsType", "ext4");
        fill(source, "readOnly", false);
        fill(source, "kind", "Shared");
    }
    if let Some(source) = present_mut(volume, "scaleIO") {
        fill_text(source, "storageMode", "ThinProvisioned");
        if is_empty(source, "fsType") {
            fill_text(source, "fsType", "xfs");
        }
    }
}
