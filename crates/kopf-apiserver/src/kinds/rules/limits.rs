//! Rules of limit ranges, quotas, nodes and namespaces.

use std::collections::HashSet;

use serde_json::Value;

use super::{Problems, ingress, resources};
use crate::kinds::fields::{list, text};
use crate::kinds::quantity::Quantity;
use crate::meta::names::{check_qualified_name, qualified_name_problems};

const SCOPES: [&str; 6] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
];

/// A limit of a kind: its bounds must leave room.
pub(super) fn limit_range(spec: &Value, problems: &mut Problems) {
    let mut kinds = HashSet::new();
    for (index, limit) in list(spec, "limits").iter().enumerate() {
        let path = format!("spec.limits[{index}]");
        let kind = text(limit, "type");
        let is_standard = matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim");
        if check_qualified_name(kind).is_ok() && !kind.contains('/') && !is_standard {
            let detail = "must be a standard limit type or fully qualified";
            problems.invalid(&format!("{path}.type"), &limit["type"], detail);
        }
        if !kinds.insert(kind) {
            problems.duplicate(&format!("{path}.type"), &limit["type"]);
        }
        if kind == "Pod" {
            for field in ["default", "defaultRequest"] {
                if limit[field].as_object().is_some_and(|fields| !fields.is_empty()) {
                    let detail = "may not be specified when `type` is 'Pod'";
                    problems.forbidden(&format!("{path}.{field}"), detail);
                }
            }
        }
        bounds(limit, &path, problems);
    }
}

fn bounds(limit: &Value, path: &str, problems: &mut Problems) {
    let mut names: Vec<&String> = ["max", "min", "default", "defaultRequest"]
        .iter()
        .flat_map(|field| limit[*field].as_object().into_iter().flatten())
        .map(|(name, _)| name)
        .collect();
    names.sort();
    names.dedup();
    for name in names {
        let value = |field: &str| limit[field].get(name);
        let mut ordered = |low: &str, low_words: &str, high: &str, shown: &str, at: &str| {
            let (Some(small), Some(large)) = (value(low), value(high)) else { return };
            if resources::nanos(small) > resources::nanos(large) {
                let quantity = go_quantity(if shown == low { small } else { large });
                let words = if high == "max" { "max value" } else { "default limit value" };
                let detail = format!(
                    "{low_words} value {} is greater than {words} {}",
                    small.as_str().unwrap_or_default(),
                    large.as_str().unwrap_or_default()
                );
                problems.invalid_text(&format!("{path}.{at}[{name}]"), &quantity, &detail);
            }
        };
        ordered("min", "min", "max", "min", "min");
        ordered("defaultRequest", "default request", "max", "defaultRequest", "defaultRequest");
        ordered("defaultRequest", "default request", "default", "defaultRequest", "defaultRequest");
        ordered("default", "default", "max", "max", "default");
    }
}

/// An amount as Go prints the struct.
pub(super) fn go_quantity(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    let Some(nanos) = Quantity::parse(text).map(Quantity::nanos) else { return text.to_owned() };
    // The fewest decimal places that hold the amount.
    let scale = (0..9).find(|scale| nanos % 10_i128.pow(9 - scale) == 0).unwrap_or(9);
    let number = nanos / 10_i128.pow(9 - scale);
    let is_binary = text.ends_with('i');
    let format = if is_binary { "BinarySI" } else { "DecimalSI" };
    let cached = if scale == 0 { text } else { "" };
    let shown_scale = if scale == 0 { "0".to_owned() } else { format!("-{scale}") };
    format!(
        "resource.Quantity{{i:resource.int64Amount{{value:{number}, scale:{shown_scale}}}, \
         d:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}, s:{cached:?}, Format:{format:?}}}"
    )
}

pub(super) fn quota(spec: &Value, problems: &mut Problems) {
    for (name, value) in spec["hard"].as_object().into_iter().flatten() {
        let path = format!("spec.hard[{name}]");
        if !resources::resource_name(name, &path, problems) {
            continue;
        }
        let before = problems.found.len();
        resources::quantity(name, value, &path, problems);
        // Whole numbers are demanded with the struct in the text.
        if problems.found.len() > before
            && let Some(last) = problems.found.last_mut()
            && last.message.ends_with("must be an integer")
        {
            last.message = format!("Invalid value: {}: must be an integer", go_quantity(value));
        }
    }
    scopes(spec, problems);
}

fn scopes(spec: &Value, problems: &mut Problems) {
    let scopes = list(spec, "scopes");
    let shown: Vec<String> = scopes.iter().map(Value::to_string).collect();
    let shown = format!("[]core.ResourceQuotaScope{{{}}}", shown.join(", "));
    let has = |wanted: &str| scopes.iter().any(|scope| scope == wanted);
    for scope in scopes {
        let name = scope.as_str().unwrap_or_default();
        if !SCOPES.contains(&name) {
            problems.invalid_text("spec.scopes", &shown, "unsupported scope");
        }
        let is_pods_only = |name: &str| matches!(name, "pods" | "count/pods");
        let counts_others = spec["hard"]
            .as_object()
            .is_some_and(|hard| hard.keys().any(|resource| !is_pods_only(resource)));
        if name == "BestEffort" && counts_others {
            let detail = "unsupported scope applied to resource";
            problems.invalid_text("spec.scopes", &shown, detail);
        }
    }
    for (one, other) in [("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")] {
        if has(one) && has(other) {
            problems.invalid_text("spec.scopes", &shown, "conflicting scopes");
        }
    }
}

pub(super) fn node(spec: &Value, problems: &mut Problems) {
    const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    let mut seen = HashSet::new();
    for (index, taint) in list(spec, "taints").iter().enumerate() {
        // Upstream looks for taints in the metadata.
        let path = format!("metadata.taints[{index}]");
        for problem in qualified_name_problems(text(taint, "key")) {
            problems.invalid(&format!("{path}.key"), &text(taint, "key").into(), &problem);
        }
        let value = text(taint, "value");
        if let Err(problem) = crate::meta::names::check_label_value(value) {
            problems.invalid(&format!("{path}.value"), &value.into(), &problem);
        }
        if text(taint, "effect").is_empty() {
            problems.required(&format!("{path}.effect"), "");
        } else {
            problems.one_of(&format!("{path}.effect"), &taint["effect"], &EFFECTS);
        }
        if !seen.insert((text(taint, "key"), text(taint, "effect"))) {
            let message = format!(
                "Duplicate value: core.Taint{{Key:{:?}, Value:{value:?}, Effect:{:?}, \
                 TimeAdded:<nil>}}: taints must be unique by key and effect pair",
                text(taint, "key"),
                text(taint, "effect")
            );
            let reason = crate::FieldErrorReason::Duplicate;
            problems.found.push(crate::FieldError::new(reason, path, message));
        }
    }
    let ranges = list(spec, "podCIDRs");
    if ranges.is_empty() && !text(spec, "podCIDR").is_empty() {
        ingress::cidr(&spec["podCIDR"], "spec.podCIDRs[0]", problems);
    }
    for (index, range) in ranges.iter().enumerate() {
        ingress::cidr(range, &format!("spec.podCIDRs[{index}]"), problems);
    }
}

pub(super) fn namespace(spec: &Value, problems: &mut Problems) {
    for finalizer in list(spec, "finalizers") {
        let name = finalizer.as_str().unwrap_or_default();
        if let Err(problem) = check_qualified_name(name) {
            problems.invalid("spec.finalizers", finalizer, &problem);
        } else if !name.contains('/') && name != "kubernetes" {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            problems.invalid("spec.finalizers", finalizer, detail);
        }
    }
}
