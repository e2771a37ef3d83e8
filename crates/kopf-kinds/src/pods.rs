//! Server-side defaults of new pods: account, tolerations, priority, status.

use serde_json::{Value, json};

use super::fields::{fill, is_empty, items_mut, list, object_mut, text, text_at};
use super::{KindContext, app_armor};
use crate::quantity::Quantity;

const TOKEN_MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOLERATED_TAINTS: [&str; 2] =
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// Applies the built-in admission plugins that change new pods.
pub(super) fn admit(context: &KindContext<'_>, object: &mut Value) {
    let namespace = text_at(object, "/metadata/namespace").to_owned();
    let is_mirror = object
        .pointer("/metadata/annotations")
        .is_some_and(|annotations| annotations.get("kubernetes.io/config.mirror").is_some());
    let Some(spec) = object_mut(object, "spec") else { return };
    if !is_mirror {
        set_account(context, &namespace, spec);
    }
    set_priority(context, spec);
    tolerate(spec);
}

fn set_account(context: &KindContext<'_>, namespace: &str, spec: &mut Value) {
    if is_empty(spec, "serviceAccountName") {
        spec["serviceAccountName"] = "default".into();
    }
    spec["serviceAccount"] = spec["serviceAccountName"].clone();
    let account =
        context.objects.get("serviceaccounts", namespace, text(spec, "serviceAccountName"));
    let account = account.as_ref().map(|account| account.content());
    if let Some(account) = account
        && is_empty(spec, "imagePullSecrets")
        && !is_empty(account, "imagePullSecrets")
    {
        spec["imagePullSecrets"] = account["imagePullSecrets"].clone();
    }
    let wants_token =
        |value: &Value| value.get("automountServiceAccountToken").and_then(Value::as_bool);
    let automount = wants_token(spec).or_else(|| account.and_then(wants_token)).unwrap_or(true);
    if automount {
        mount_token(context, spec);
    }
}

/// Adds the volume with the account's token, and mounts it unless something else is mounted there.
fn mount_token(context: &KindContext<'_>, spec: &mut Value) {
    let present = list(spec, "volumes")
        .iter()
        .find(|volume| text(volume, "name").starts_with("kube-api-access-"));
    let (name, is_new) = match present {
        Some(volume) => (text(volume, "name").to_owned(), false),
        None => (format!("kube-api-access-{}", context.ids.suffix()), true),
    };
    let mut is_used = false;
    for containers in ["initContainers", "containers"] {
        for container in items_mut(spec, containers) {
            let is_taken = list(container, "volumeMounts")
                .iter()
                .any(|mount| text(mount, "mountPath") == TOKEN_MOUNT);
            if is_taken {
                continue;
            }
            is_used = true;
            let mount = json!({"name": name, "readOnly": true, "mountPath": TOKEN_MOUNT});
            fill(container, "volumeMounts", json!([]));
            if let Some(mounts) = container["volumeMounts"].as_array_mut() {
                mounts.push(mount);
            }
        }
    }
    if !is_used || !is_new {
        return;
    }
    fill(spec, "volumes", json!([]));
    if let Some(volumes) = spec["volumes"].as_array_mut() {
        volumes.push(json!({"name": name, "projected": {"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt",
                           "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {
                "apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ]}}));
    }
}

fn set_priority(context: &KindContext<'_>, spec: &mut Value) {
    let classes = "priorityclasses.scheduling.k8s.io";
    let name = text(spec, "priorityClassName").to_owned();
    let class = if name.is_empty() {
        let mut all = context.objects.list(classes).into_iter();
        all.find(|class| class.content()["globalDefault"] == true)
    } else {
        context.objects.get(classes, "", &name)
    };
    let class = class.as_ref().map(|class| class.content());
    if let Some(class) = class
        && name.is_empty()
    {
        spec["priorityClassName"] = class["metadata"]["name"].clone();
    }
    let value = match (class, name.as_str()) {
        (Some(class), _) => class["value"].as_i64().unwrap_or_default(),
        (None, "system-cluster-critical") => 2_000_000_000,
        (None, "system-node-critical") => 2_000_001_000,
        (None, _) => 0,
    };
    fill(spec, "priority", value);
    let policy = class.and_then(|class| class["preemptionPolicy"].as_str());
    fill(spec, "preemptionPolicy", policy.unwrap_or("PreemptLowerPriority"));
}

/// Applies the built-in admission plugins that change updated pods, and restricts subresources.
pub(super) fn prepare_update(context: &KindContext<'_>, object: &mut Value, old: &Value) {
    match context.subresource {
        "" => {
            if let Some(spec) = object_mut(object, "spec") {
                tolerate(spec);
            }
        }
        "resize" => keep_all_but_resources(object, old),
        "ephemeralcontainers" => {
            let added = object["spec"]["ephemeralContainers"].clone();
            object["spec"] = old["spec"].clone();
            match added {
                Value::Null => {
                    if let Some(spec) = object["spec"].as_object_mut() {
                        spec.shift_remove("ephemeralContainers");
                    }
                }
                added => object["spec"]["ephemeralContainers"] = added,
            }
        }
        "status" => {
            if let Some(status) = object_mut(object, "status")
                && let Some(class) = old.pointer("/status/qosClass")
                && is_empty(status, "qosClass")
            {
                status["qosClass"] = class.clone();
            }
        }
        _ => {}
    }
}

/// `/resize` changes the resources of containers and nothing else.
fn keep_all_but_resources(object: &mut Value, old: &Value) {
    const LISTS: [&str; 2] = ["containers", "initContainers"];
    let has_others = |field: &str| {
        let (new, old) = (list(&object["spec"], field), list(&old["spec"], field));
        new.len() != old.len() || new.iter().zip(old).any(|(new, old)| new["name"] != old["name"])
    };
    // Other containers are rejected later.
    if LISTS.iter().any(|field| has_others(field)) {
        return;
    }
    let mut spec = old["spec"].clone();
    for field in LISTS {
        let resized = list(&object["spec"], field).to_vec();
        for (container, resized) in items_mut(&mut spec, field).zip(&resized) {
            for part in ["resources", "resizePolicy"] {
                if let Some(fields) = container.as_object_mut() {
                    match resized.get(part) {
                        Some(value) => fields.insert(part.to_owned(), value.clone()),
                        None => fields.shift_remove(part),
                    };
                }
            }
        }
    }
    object["spec"] = spec;
}

/// By default, pods stay for five minutes on nodes that are gone.
fn tolerate(spec: &mut Value) {
    for taint in TOLERATED_TAINTS {
        let is_tolerated = list(spec, "tolerations").iter().any(|toleration| {
            let (key, effect) = (text(toleration, "key"), text(toleration, "effect"));
            (key == taint || key.is_empty()) && matches!(effect, "NoExecute" | "")
        });
        if is_tolerated {
            continue;
        }
        fill(spec, "tolerations", json!([]));
        if let Some(tolerations) = spec["tolerations"].as_array_mut() {
            tolerations.push(json!({"key": taint, "operator": "Exists", "effect": "NoExecute",
                                    "tolerationSeconds": 300}));
        }
    }
}

/// Sets the status of a new pod.
pub(super) fn prepare_create(context: &KindContext<'_>, object: &mut Value) {
    let class = quality_of_service(&object["spec"]);
    let mut status = json!({"phase": "Pending", "qosClass": class});
    if !is_empty(&object["spec"], "schedulingGates") {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastTransitionTime": format!("{:.0}", context.now),
        }]);
    }
    object["status"] = status;
    app_armor::synchronise(object);
}

/// `Guaranteed` if every container has equal requests and limits, `BestEffort` if none has any.
pub(super) fn quality_of_service(spec: &Value) -> &'static str {
    let containers = || list(spec, "containers").iter().chain(list(spec, "initContainers"));
    let amount = |container: &Value, kind: &str, name: &str| {
        let text = container.pointer(&format!("/resources/{kind}/{name}"))?.as_str()?;
        Quantity::parse(text).map(Quantity::nanos).filter(|nanos| *nanos > 0)
    };
    let has_any = containers().any(|container| {
        ["limits", "requests"].iter().any(|kind| {
            ["cpu", "memory"].iter().any(|name| amount(container, kind, name).is_some())
        })
    });
    let is_guaranteed = containers().all(|container| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = amount(container, "limits", name);
            let request = amount(container, "requests", name);
            limit.is_some() && (request.is_none() || request == limit)
        })
    });
    match (has_any, is_guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
