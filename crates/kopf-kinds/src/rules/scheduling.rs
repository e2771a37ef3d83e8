//! Rules of pod scheduling: tolerations, affinity, spreading, names and gates.

use std::collections::HashSet;

use serde_json::Value;

use super::network::{ADDRESS_DETAIL, is_address};
use super::pod_spec::check_label;
use super::{Problems, labels, resources};
use crate::fields::{is_empty, list, text};
use crate::names::{
    check_label_value, check_qualified_name, label_problems, qualified_name_problems,
    subdomain_problems,
};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(super) fn affinity(affinity: &Value, path: &str, problems: &mut Problems) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let nodes = &affinity["nodeAffinity"];
    if nodes[REQUIRED].is_object() {
        let at = format!("{path}.nodeAffinity.{REQUIRED}");
        node_selector(&nodes[REQUIRED], &at, problems);
    }
    for (index, weighted) in list(nodes, PREFERRED).iter().enumerate() {
        let at = format!("{path}.nodeAffinity.{PREFERRED}[{index}]");
        weight(weighted, &at, problems);
        node_term(&weighted["preference"], &format!("{at}.preference"), problems);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        for (index, term) in list(&affinity[kind], REQUIRED).iter().enumerate() {
            pod_term(term, &format!("{path}.{kind}.{REQUIRED}[{index}]"), problems);
        }
        for (index, weighted) in list(&affinity[kind], PREFERRED).iter().enumerate() {
            let at = format!("{path}.{kind}.{PREFERRED}[{index}]");
            weight(weighted, &at, problems);
            pod_term(&weighted["podAffinityTerm"], &format!("{at}.podAffinityTerm"), problems);
        }
    }
}

fn weight(weighted: &Value, path: &str, problems: &mut Problems) {
    let weight = weighted["weight"].as_i64().unwrap_or_default();
    if !(1..=100).contains(&weight) {
        let detail = "must be in the range 1-100";
        problems.invalid(&format!("{path}.weight"), &weight.into(), detail);
    }
}

/// Checks a node selector, which selects nodes that match any of its terms.
pub(super) fn node_selector(selector: &Value, path: &str, problems: &mut Problems) {
    let path = format!("{path}.nodeSelectorTerms");
    if is_empty(selector, "nodeSelectorTerms") {
        problems.required(&path, "must have at least one node selector term");
    }
    for (index, term) in list(selector, "nodeSelectorTerms").iter().enumerate() {
        node_term(term, &format!("{path}[{index}]"), problems);
    }
}

fn node_term(term: &Value, path: &str, problems: &mut Problems) {
    for (index, requirement) in list(term, "matchExpressions").iter().enumerate() {
        node_requirement(requirement, &format!("{path}.matchExpressions[{index}]"), problems);
    }
    for (index, requirement) in list(term, "matchFields").iter().enumerate() {
        node_field(requirement, &format!("{path}.matchFields[{index}]"), problems);
    }
}

fn node_requirement(requirement: &Value, path: &str, problems: &mut Problems) {
    let values = list(requirement, "values");
    let at = format!("{path}.values");
    match text(requirement, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            problems.required(&at, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            problems.forbidden(&at, detail);
        }
        "Gt" | "Lt" if values.len() != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            problems.required(&at, detail);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        operator => {
            let detail = "not a valid selector operator";
            problems.invalid(&format!("{path}.operator"), &operator.into(), detail);
        }
    }
    let key = text(requirement, "key");
    for problem in qualified_name_problems(key) {
        problems.invalid(&format!("{path}.key"), &key.into(), &problem);
    }
    for (index, value) in values.iter().enumerate() {
        if let Err(problem) = check_label_value(value.as_str().unwrap_or_default()) {
            problems.invalid(&format!("{at}[{index}]"), value, &problem);
        }
    }
}

/// The name is the only selectable field of a node.
fn node_field(requirement: &Value, path: &str, problems: &mut Problems) {
    let values = list(requirement, "values");
    match text(requirement, "operator") {
        "In" | "NotIn" if values.len() != 1 => {
            let detail =
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            problems.required(&format!("{path}.values"), detail);
        }
        "In" | "NotIn" => {}
        operator => {
            let detail = "not a valid selector operator";
            problems.invalid(&format!("{path}.operator"), &operator.into(), detail);
        }
    }
    let key = text(requirement, "key");
    if key != "metadata.name" {
        let detail = "not a valid field selector key";
        problems.invalid(&format!("{path}.key"), &key.into(), detail);
        return;
    }
    for (index, value) in values.iter().enumerate() {
        for problem in subdomain_problems(value.as_str().unwrap_or_default()) {
            problems.invalid(&format!("{path}.values[{index}]"), value, &problem);
        }
    }
}

fn pod_term(term: &Value, path: &str, problems: &mut Problems) {
    for selector in ["labelSelector", "namespaceSelector"] {
        labels::check(&term[selector], &format!("{path}.{selector}"), problems);
    }
    for name in list(term, "namespaces") {
        for problem in label_problems(name.as_str().unwrap_or_default()) {
            problems.invalid(&format!("{path}.namespace"), name, &problem);
        }
    }
    label_keys(term, path, problems);
    let key = text(term, "topologyKey");
    let at = format!("{path}.topologyKey");
    if key.is_empty() {
        problems.required(&at, "can not be empty");
    }
    for problem in qualified_name_problems(key) {
        problems.invalid(&at, &key.into(), &problem);
    }
}

/// Checks the keys whose values are taken from the pod's own labels.
fn label_keys(term: &Value, path: &str, problems: &mut Problems) {
    let selector = &term["labelSelector"];
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = list(term, field);
        let at = format!("{path}.{field}");
        if !keys.is_empty() && !selector.is_object() {
            problems.forbidden(&at, "must not be specified when labelSelector is not set");
            continue;
        }
        label_names(keys, &at, problems);
    }
    let mut selected: HashSet<&str> =
        selector["matchLabels"].as_object().into_iter().flatten().map(|(key, _)| &**key).collect();
    let keys = list(term, "matchLabelKeys");
    for expression in list(selector, "matchExpressions") {
        let key = text(expression, "key");
        if let Some(index) = keys.iter().rposition(|it| it == key)
            && selected.contains(key)
        {
            let detail = "exists in both matchLabelKeys and labelSelector";
            problems.invalid(&format!("{path}[{index}]"), &key.into(), detail);
        }
        selected.insert(key);
    }
    let others = list(term, "mismatchLabelKeys");
    for (index, key) in keys.iter().enumerate().filter(|(_, key)| others.contains(key)) {
        let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
        problems.invalid(&format!("{path}.matchLabelKeys[{index}]"), key, detail);
    }
}

fn label_names(keys: &[Value], path: &str, problems: &mut Problems) {
    for (index, key) in keys.iter().enumerate() {
        for problem in qualified_name_problems(key.as_str().unwrap_or_default()) {
            problems.invalid(&format!("{path}[{index}]"), key, &problem);
        }
    }
}

pub(super) fn gates(spec: &Value, path: &str, problems: &mut Problems) {
    for (index, gate) in list(spec, "readinessGates").iter().enumerate() {
        let kind = text(gate, "conditionType");
        for problem in qualified_name_problems(kind) {
            let at = format!("{path}.readinessGates[{index}].conditionType");
            problems.invalid(&at, &kind.into(), &problem);
        }
    }
    let mut seen = HashSet::new();
    for (index, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        let at = format!("{path}.schedulingGates[{index}]");
        for problem in qualified_name_problems(name) {
            problems.invalid(&at, &name.into(), &problem);
        }
        if !seen.insert(name) {
            problems.duplicate(&at, &gate["name"]);
        }
    }
}

pub(super) fn spreading(spec: &Value, path: &str, problems: &mut Problems) {
    let constraints = list(spec, "topologySpreadConstraints");
    for (index, constraint) in constraints.iter().enumerate() {
        let at = format!("{path}.topologySpreadConstraints[{index}]");
        positive(&constraint["maxSkew"], &format!("{at}.maxSkew"), problems);
        let key = text(constraint, "topologyKey");
        if key.is_empty() {
            problems.required(&format!("{at}.topologyKey"), "can not be empty");
        }
        let action = text(constraint, "whenUnsatisfiable");
        problems.one_of(
            &format!("{at}.whenUnsatisfiable"),
            &action.into(),
            &["DoNotSchedule", "ScheduleAnyway"],
        );
        let is_same = |other: &Value| {
            text(other, "topologyKey") == key && text(other, "whenUnsatisfiable") == action
        };
        if constraints[index + 1..].iter().any(is_same) {
            let path = format!("{at}.{{topologyKey, whenUnsatisfiable}}");
            problems.duplicate(&path, &format!("{{{key}, {action}}}").into());
        }
        let least = &constraint["minDomains"];
        if !least.is_null() {
            positive(least, &format!("{at}.minDomains"), problems);
            if action != "DoNotSchedule" {
                let detail = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                );
                problems.invalid(&format!("{at}.minDomains"), least, &detail);
            }
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            problems.one_of_if_set(constraint, &at, policy, &["Honor", "Ignore"]);
        }
        spread_keys(constraint, &format!("{at}.matchLabelKeys"), problems);
        labels::check(&constraint["labelSelector"], &format!("{at}.labelSelector"), problems);
    }
}

fn positive(value: &Value, path: &str, problems: &mut Problems) {
    let number = value.as_i64().unwrap_or_default();
    if number <= 0 {
        problems.invalid(path, &number.into(), "must be greater than zero");
    }
}

fn spread_keys(constraint: &Value, path: &str, problems: &mut Problems) {
    let keys = list(constraint, "matchLabelKeys");
    let selector = &constraint["labelSelector"];
    if !keys.is_empty() && !selector.is_object() {
        problems.forbidden(path, "must not be specified when labelSelector is not set");
    }
    label_names(keys, path, problems);
    let expressions = list(selector, "matchExpressions");
    for (index, key) in keys.iter().enumerate() {
        let is_label = selector["matchLabels"].get(key.as_str().unwrap_or_default()).is_some();
        if is_label || expressions.iter().any(|expression| expression["key"] == *key) {
            let detail = "exists in both matchLabelKeys and labelSelector";
            problems.invalid(&format!("{path}[{index}]"), key, detail);
        }
    }
}

/// Checks the names that a pod spec refers to or defines.
pub(super) fn names(spec: &Value, path: &str, problems: &mut Problems) {
    for field in ["serviceAccountName", "nodeName"] {
        let name = text(spec, field);
        if !name.is_empty() {
            for problem in subdomain_problems(name) {
                problems.invalid(&format!("{path}.{field}"), &spec[field], &problem);
            }
        }
    }
    if let Some(deadline) = spec["activeDeadlineSeconds"].as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&deadline)
    {
        problems.invalid(
            &format!("{path}.activeDeadlineSeconds"),
            &spec["activeDeadlineSeconds"],
            "must be between 1 and 2147483647, inclusive",
        );
    }
    for field in ["hostname", "subdomain"] {
        let name = text(spec, field);
        if !name.is_empty() {
            check_label(name, &format!("{path}.{field}"), problems);
        }
    }
}

/// Checks the classes that a pod spec names.
pub(super) fn classes(spec: &Value, path: &str, problems: &mut Problems) {
    for field in ["priorityClassName", "runtimeClassName"] {
        let name = text(spec, field);
        if !name.is_empty() || (field == "runtimeClassName" && spec[field].is_string()) {
            for problem in subdomain_problems(name) {
                problems.invalid(&format!("{path}.{field}"), &spec[field], &problem);
            }
        }
    }
    let policies = ["PreemptLowerPriority", "Never"];
    problems.one_of_if_set(spec, path, "preemptionPolicy", &policies);
    if let Some(overhead) = spec["overhead"].as_object() {
        let limits = serde_json::json!({"limits": overhead});
        resources::check(&limits, &format!("{path}.overhead"), problems);
    }
}

pub(super) fn tolerations(spec: &Value, path: &str, problems: &mut Problems) {
    for (index, toleration) in list(spec, "tolerations").iter().enumerate() {
        let at = format!("{path}.tolerations[{index}]");
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let operator_path = format!("{at}.operator");
        if !key.is_empty()
            && let Err(problem) = check_qualified_name(key)
        {
            problems.invalid(&format!("{at}.key"), &toleration["key"], &problem);
        }
        if key.is_empty() && operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all \
                          values and all keys\"";
            problems.invalid(&operator_path, &operator.into(), detail);
        }
        let effect = text(toleration, "effect");
        if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            problems.invalid(&format!("{at}.effect"), &effect.into(), detail);
        }
        let value = text(toleration, "value");
        match operator {
            "Equal" | "" => {
                if let Err(problem) = check_label_value(value) {
                    problems.invalid(&operator_path, &value.into(), &problem);
                }
            }
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                problems.invalid(&operator_path, &value.into(), detail);
            }
            "Exists" => {}
            _ => {
                let supported = ["Equal", "Exists"];
                problems.one_of(&operator_path, &toleration["operator"], &supported);
            }
        }
        if !effect.is_empty() {
            problems.one_of(&format!("{at}.effect"), &toleration["effect"], &EFFECTS);
        }
    }
}

pub(super) fn host_aliases(spec: &Value, path: &str, problems: &mut Problems) {
    for (index, alias) in list(spec, "hostAliases").iter().enumerate() {
        let at = format!("{path}.hostAliases[{index}]");
        if !is_address(text(alias, "ip")) {
            problems.invalid(&format!("{at}.ip"), &alias["ip"], ADDRESS_DETAIL);
        }
        for (place, host) in list(alias, "hostnames").iter().enumerate() {
            for problem in subdomain_problems(host.as_str().unwrap_or_default()) {
                problems.invalid(&format!("{at}.hostnames[{place}]"), host, &problem);
            }
        }
    }
}
