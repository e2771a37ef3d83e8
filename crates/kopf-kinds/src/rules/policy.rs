//! Rules of roles, budgets, priorities and leases.

use serde_json::Value;

use super::pod_spec::check_label;
use super::{Problems, admission, go_text, labels, resources, scheduling, workloads};
use crate::fields::{is_empty, list, text};
use crate::go_structs;
use crate::names::subdomain_problems;

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn check(group: &str, resource: &str, object: &Value, problems: &mut Problems) {
    match (group, resource) {
        (RBAC, "roles" | "clusterroles") => role(object, problems),
        (RBAC, "rolebindings" | "clusterrolebindings") => binding(object, problems),
        ("admissionregistration.k8s.io", _) => admission::check(resource, object, problems),
        ("policy", "poddisruptionbudgets") => {
            let spec = &object["spec"];
            if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
                let shown = go_structs::printed("policy.PodDisruptionBudgetSpec", spec);
                let detail = "minAvailable and maxUnavailable cannot be both set";
                problems.invalid_text("spec", &shown, detail);
            }
            for field in ["minAvailable", "maxUnavailable"] {
                let path = format!("spec.{field}");
                if !spec[field].is_null() {
                    workloads::amount(&spec[field], &path, problems);
                    workloads::not_more_than_all(&spec[field], &path, problems);
                }
            }
            labels::check(&spec["selector"], "spec.selector", problems);
            let policies = ["AlwaysAllow", "IfHealthyBudget"];
            problems.one_of_if_set(spec, "spec", "unhealthyPodEvictionPolicy", &policies);
        }
        ("coordination.k8s.io", "leases") => lease(&object["spec"], problems),
        ("scheduling.k8s.io", "priorityclasses") => priority_class(object, problems),
        ("node.k8s.io", "runtimeclasses") => {
            check_label(text(object, "handler"), "handler", problems);
            runtime_class(object, problems);
        }
        _ => {}
    }
}

/// Checks what a runtime class adds to pods.
fn runtime_class(object: &Value, problems: &mut Problems) {
    if object["overhead"].is_object() {
        let amounts = serde_json::json!({ "limits": object["overhead"]["podFixed"] });
        resources::check(&amounts, "overhead", problems);
    }
    let scheduling = &object["scheduling"];
    let path = "scheduling.nodeSelector";
    crate::meta::validate_labels(&scheduling["nodeSelector"], path, &mut problems.found);
    // Upstream repeats the name of the field.
    scheduling::tolerations(scheduling, "scheduling.tolerations", problems);
}

fn role(object: &Value, problems: &mut Problems) {
    let aggregation = &object["aggregationRule"];
    if aggregation.is_object() && is_empty(aggregation, "clusterRoleSelectors") {
        problems.required(
            "aggregationRule.clusterRoleSelectors",
            "at least one clusterRoleSelector required if aggregationRule is non-nil",
        );
    }
    for (index, selector) in list(aggregation, "clusterRoleSelectors").iter().enumerate() {
        let path = format!("aggregationRule.clusterRoleSelectors[{index}]");
        labels::check(selector, &path, problems);
        if !labels::is_valid(selector) {
            problems.invalid(&path, &"null".into(), "invalid label selector.");
        }
    }
    for (index, rule) in list(object, "rules").iter().enumerate() {
        let path = format!("rules[{index}]");
        if is_empty(rule, "verbs") {
            problems.required(&format!("{path}.verbs"), "verbs must contain at least one value");
        }
        if !is_empty(rule, "nonResourceURLs") {
            let shown = go_text::string_list(&rule["nonResourceURLs"]);
            if object["kind"] == "Role" {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                problems.invalid_text(&format!("{path}.nonResourceURLs"), &shown, detail);
            }
            if !is_empty(rule, "apiGroups")
                || !is_empty(rule, "resources")
                || !is_empty(rule, "resourceNames")
            {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                problems.invalid_text(&format!("{path}.nonResourceURLs"), &shown, detail);
            }
            continue;
        }
        if is_empty(rule, "apiGroups") {
            problems.required(
                &format!("{path}.apiGroups"),
                "resource rules must supply at least one api group",
            );
        }
        if is_empty(rule, "resources") {
            problems.required(
                &format!("{path}.resources"),
                "resource rules must supply at least one resource",
            );
        }
    }
}

fn binding(object: &Value, problems: &mut Problems) {
    let role = &object["roleRef"];
    if text(role, "apiGroup") != RBAC {
        problems.one_of("roleRef.apiGroup", &role["apiGroup"], &[RBAC]);
    }
    let kinds: &[&str] = if object["kind"] == "ClusterRoleBinding" {
        &["ClusterRole"]
    } else {
        &["Role", "ClusterRole"]
    };
    problems.one_of("roleRef.kind", &role["kind"], kinds);
    if text(role, "name").is_empty() {
        problems.required("roleRef.name", "");
    }
    for (index, subject) in list(object, "subjects").iter().enumerate() {
        let path = format!("subjects[{index}]");
        if text(subject, "name").is_empty() {
            problems.required(&format!("{path}.name"), "");
        }
        let group = match text(subject, "kind") {
            "ServiceAccount" => "",
            _ => RBAC,
        };
        let is_known = matches!(text(subject, "kind"), "ServiceAccount" | "User" | "Group");
        if is_known && text(subject, "apiGroup") != group {
            let path = format!("{path}.apiGroup");
            problems.one_of(&path, &subject["apiGroup"], &[group]);
        }
        if text(subject, "kind") == "ServiceAccount" && !is_empty(subject, "name") {
            for problem in subdomain_problems(text(subject, "name")) {
                problems.invalid(&format!("{path}.name"), &subject["name"], &problem);
            }
        }
        let kinds = ["ServiceAccount", "User", "Group"];
        problems.one_of(&format!("{path}.kind"), &subject["kind"], &kinds);
        let needs_namespace =
            text(subject, "kind") == "ServiceAccount" && object["kind"] == "ClusterRoleBinding";
        if needs_namespace && text(subject, "namespace").is_empty() {
            problems.required(&format!("{path}.namespace"), "");
        }
    }
}

fn lease(spec: &Value, problems: &mut Problems) {
    if spec["leaseDurationSeconds"].as_i64().is_some_and(|seconds| seconds <= 0) {
        problems.invalid(
            "spec.leaseDurationSeconds",
            &spec["leaseDurationSeconds"],
            "must be greater than 0",
        );
    }
    problems.not_negative("spec.leaseTransitions", &spec["leaseTransitions"]);
}

fn priority_class(object: &Value, problems: &mut Problems) {
    const USER_PRIORITY_MAX: i64 = 1_000_000_000;
    let value = object["value"].as_i64().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let is_system = matches!(name, "system-cluster-critical" | "system-node-critical");
    if name.starts_with("system-") && !is_system {
        let detail = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: \
             {name} is not a known system priority class"
        );
        problems.forbidden("metadata.name", &detail);
    }
    let policies = ["PreemptLowerPriority", "Never"];
    problems.one_of_if_set(object, "", "preemptionPolicy", &policies);
    if !name.starts_with("system-") && value > USER_PRIORITY_MAX {
        problems.forbidden(
            "value",
            &format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}"),
        );
    }
}

pub(super) fn update(
    group: &str,
    resource: &str,
    object: &Value,
    old: &Value,
    problems: &mut Problems,
) {
    match (group, resource) {
        (RBAC, "rolebindings" | "clusterrolebindings") if object["roleRef"] != old["roleRef"] => {
            let role = &object["roleRef"];
            let shown = format!(
                "rbac.RoleRef{{APIGroup:{:?}, Kind:{:?}, Name:{:?}}}",
                text(role, "apiGroup"),
                text(role, "kind"),
                text(role, "name")
            );
            problems.invalid_text("roleRef", &shown, "cannot change roleRef");
        }
        ("scheduling.k8s.io", "priorityclasses") => {
            if object["value"].as_i64().unwrap_or_default()
                != old["value"].as_i64().unwrap_or_default()
            {
                problems.forbidden("value", "may not be changed in an update.");
            }
            if object["preemptionPolicy"] != old["preemptionPolicy"] {
                problems.invalid(
                    "preemptionPolicy",
                    &object["preemptionPolicy"],
                    "field is immutable",
                );
            }
        }
        ("node.k8s.io", "runtimeclasses") => {
            problems.immutable("handler", &object["handler"], &old["handler"]);
        }
        ("networking.k8s.io", "ingressclasses") => {
            let controller = |class: &Value| class["spec"]["controller"].clone();
            problems.immutable("spec.controller", &controller(object), &controller(old));
        }
        _ => {}
    }
}
