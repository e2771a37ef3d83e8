//! Defaults of webhooks, roles, storage and priority classes.

use serde_json::{Value, json};

use crate::fields::{fill, fill_number, fill_text, is_empty, items_mut, object_mut, present_mut};

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn apply(group: &str, resource: &str, object: &mut Value) {
    match (group, resource) {
        ("admissionregistration.k8s.io", _) => admission(resource, object),
        (RBAC, "rolebindings" | "clusterrolebindings") => binding(object),
        ("storage.k8s.io", "storageclasses") => {
            fill(object, "reclaimPolicy", "Delete");
            fill(object, "volumeBindingMode", "Immediate");
        }
        ("storage.k8s.io", "csidrivers") => driver(object),
        ("scheduling.k8s.io", "priorityclasses") => {
            fill(object, "preemptionPolicy", "PreemptLowerPriority");
        }
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => {
            if let Some(spec) = object_mut(object, "spec") {
                fill_number(spec, "matchingPrecedence", 1000);
            }
        }
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => {
            if let Some(spec) = present_mut(object, "spec") {
                priority_level(spec);
            }
        }
        _ => {}
    }
}

fn priority_level(spec: &mut Value) {
    if let Some(exempt) = present_mut(spec, "exempt") {
        fill(exempt, "nominalConcurrencyShares", 0);
        fill(exempt, "lendablePercent", 0);
    }
    let Some(limited) = present_mut(spec, "limited") else { return };
    fill(limited, "nominalConcurrencyShares", 30);
    fill(limited, "lendablePercent", 0);
    let queuing = limited.get_mut("limitResponse").and_then(|it| present_mut(it, "queuing"));
    if let Some(queuing) = queuing {
        fill_number(queuing, "queues", 64);
        fill_number(queuing, "handSize", 8);
        fill_number(queuing, "queueLengthLimit", 50);
    }
}

fn admission(resource: &str, object: &mut Value) {
    match resource {
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => {
            let is_mutating = resource.starts_with("mutating");
            for webhook in items_mut(object, "webhooks") {
                self::webhook(webhook);
                if is_mutating {
                    fill(webhook, "reinvocationPolicy", "Never");
                }
            }
        }
        "validatingadmissionpolicies" | "mutatingadmissionpolicies" => {
            let Some(spec) = object_mut(object, "spec") else { return };
            fill(spec, "failurePolicy", "Fail");
            match_resources(spec, "matchConstraints");
        }
        "validatingadmissionpolicybindings" | "mutatingadmissionpolicybindings" => {
            let Some(spec) = object_mut(object, "spec") else { return };
            match_resources(spec, "matchResources");
        }
        _ => {}
    }
}

fn webhook(webhook: &mut Value) {
    fill(webhook, "failurePolicy", "Fail");
    fill(webhook, "matchPolicy", "Equivalent");
    fill(webhook, "namespaceSelector", json!({}));
    fill(webhook, "objectSelector", json!({}));
    fill(webhook, "timeoutSeconds", 10);
    items_mut(webhook, "rules").for_each(|rule| fill(rule, "scope", "*"));
    if let Some(service) =
        present_mut(webhook, "clientConfig").and_then(|config| present_mut(config, "service"))
    {
        fill(service, "port", 443);
    }
}

fn match_resources(spec: &mut Value, name: &str) {
    let Some(matching) = present_mut(spec, name) else { return };
    fill(matching, "matchPolicy", "Equivalent");
    fill(matching, "namespaceSelector", json!({}));
    fill(matching, "objectSelector", json!({}));
    for list in ["resourceRules", "excludeResourceRules"] {
        items_mut(matching, list).for_each(|rule| fill(rule, "scope", "*"));
    }
}

fn binding(object: &mut Value) {
    if let Some(role) = object_mut(object, "roleRef") {
        fill_text(role, "apiGroup", RBAC);
    }
    for subject in items_mut(object, "subjects") {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            fill_text(subject, "apiGroup", RBAC);
        }
    }
}

fn driver(object: &mut Value) {
    let Some(spec) = object_mut(object, "spec") else { return };
    fill(spec, "attachRequired", true);
    fill(spec, "podInfoOnMount", false);
    fill(spec, "storageCapacity", false);
    fill(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    fill(spec, "requiresRepublish", false);
    fill(spec, "seLinuxMount", false);
    if is_empty(spec, "volumeLifecycleModes") {
        spec["volumeLifecycleModes"] = json!(["Persistent"]);
    }
}
