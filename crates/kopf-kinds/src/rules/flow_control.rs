//! Rules of flow schemas and priority levels.

use std::collections::HashSet;

use serde_json::Value;

use super::{Problems, go_text};
use crate::fields::{is_empty, list, text};
use crate::names::{label_problems, subdomain_problems};
use crate::{FieldError, FieldErrorReason};
use crate::{flow_control, go_structs};

const PRECEDENCE_MAX: i64 = 10_000;
const QUEUES_MAX: i64 = 10_000_000;
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// Checks an object of either kind.
pub(super) fn check(resource: &str, object: &Value, problems: &mut Problems) {
    let name = text(&object["metadata"], "name");
    match resource {
        "flowschemas" => {
            schema(&object["spec"], name, problems);
            fixed("FlowSchema", object, name, problems);
        }
        "prioritylevelconfigurations" => {
            fixed("PriorityLevelConfiguration", object, name, problems);
            level(&object["spec"], name, problems);
        }
        _ => {}
    }
    conditions(&object["status"], problems);
}

/// Checks the conditions of a status.
pub(super) fn conditions(status: &Value, problems: &mut Problems) {
    let mut seen = HashSet::new();
    for (index, condition) in list(status, "conditions").iter().enumerate() {
        let path = format!("status.conditions[{index}].type");
        let kind = text(condition, "type");
        if !seen.insert(kind) {
            problems.duplicate(&path, &kind.into());
        }
        if kind.is_empty() {
            problems.required(&path, "must not be empty");
        }
    }
}

/// Rejects changes of mandatory objects, except of what the level `exempt` has and lends.
fn fixed(kind: &str, object: &Value, name: &str, problems: &mut Problems) {
    let Some(mut expected) = flow_control::fixed_spec(kind, name) else { return };
    let spec = &object["spec"];
    let mut actual = spec.clone();
    let is_exempt_level = kind == "PriorityLevelConfiguration" && name == "exempt";
    if is_exempt_level {
        for spec in [&mut expected, &mut actual] {
            spec.as_object_mut().and_then(|fields| fields.shift_remove("exempt"));
        }
    }
    if actual == expected {
        return;
    }
    let exception = if is_exempt_level { " except the 'spec.exempt' field" } else { "" };
    let detail = format!("spec of '{name}'{exception} must equal the fixed value");
    let shown = go_structs::printed(&format!("flowcontrol.{kind}Spec"), spec);
    problems.invalid_text("spec", &shown, &detail);
}

fn schema(spec: &Value, name: &str, problems: &mut Problems) {
    let path = "spec.matchingPrecedence";
    let precedence = spec["matchingPrecedence"].as_i64().unwrap_or_default();
    if precedence <= 0 {
        problems.invalid(path, &precedence.into(), "must be a positive value");
    }
    if precedence > PRECEDENCE_MAX {
        let detail = format!("must not be greater than {PRECEDENCE_MAX}");
        problems.invalid(path, &precedence.into(), &detail);
    }
    if precedence == 1 && name != "exempt" {
        let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
        problems.invalid(path, &precedence.into(), detail);
    }
    let method = &spec["distinguisherMethod"];
    if method.is_object() && !matches!(text(method, "type"), "ByUser" | "ByNamespace") {
        let shown =
            format!("flowcontrol.FlowDistinguisherMethod{{Type:{:?}}}", text(method, "type"));
        let supported = "\"ByNamespace\", \"ByUser\"";
        not_supported("spec.distinguisherMethod.type", &shown, supported, problems);
    }
    let path = "spec.priorityLevelConfiguration.name";
    let level = text(&spec["priorityLevelConfiguration"], "name");
    if level.is_empty() {
        problems.required(path, "must reference a priority level");
    } else {
        for problem in subdomain_problems(level) {
            problems.invalid(path, &level.into(), &problem);
        }
    }
    for (index, rule) in list(spec, "rules").iter().enumerate() {
        self::rule(rule, &format!("spec.rules[{index}]"), problems);
    }
}

fn not_supported(path: &str, shown: &str, supported: &str, problems: &mut Problems) {
    let message = format!("Unsupported value: {shown}: supported values: {supported}");
    problems.found.push(FieldError::new(FieldErrorReason::NotSupported, path, message));
}

fn rule(rule: &Value, path: &str, problems: &mut Problems) {
    if is_empty(rule, "subjects") {
        let detail = "subjects must contain at least one value";
        problems.required(&format!("{path}.subjects"), detail);
    }
    for (index, subject) in list(rule, "subjects").iter().enumerate() {
        self::subject(subject, &format!("{path}.subjects[{index}]"), problems);
    }
    if is_empty(rule, "resourceRules") && is_empty(rule, "nonResourceRules") {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        problems.required(path, detail);
    }
    for (index, rule) in list(rule, "resourceRules").iter().enumerate() {
        resource_rule(rule, &format!("{path}.resourceRules[{index}]"), problems);
    }
    for (index, rule) in list(rule, "nonResourceRules").iter().enumerate() {
        path_rule(rule, &format!("{path}.nonResourceRules[{index}]"), problems);
    }
}

fn subject(subject: &Value, path: &str, problems: &mut Problems) {
    const KINDS: [(&str, &str); 3] =
        [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = text(subject, "kind");
    if !KINDS.iter().any(|(name, _)| *name == kind) {
        let supported = ["Group", "ServiceAccount", "User"];
        problems.one_of(&format!("{path}.kind"), &kind.into(), &supported);
        return;
    }
    for (name, field) in KINDS {
        let part = &subject[field];
        let at = format!("{path}.{field}");
        if name != kind {
            if part.is_object() {
                let detail = format!("{field} is forbidden when subject kind is not '{name}'");
                problems.forbidden(&at, &detail);
            }
        } else if !part.is_object() {
            problems.required(&at, &format!("{field} is required when subject kind is '{name}'"));
        } else if name == "ServiceAccount" {
            account(part, &at, problems);
        } else if is_empty(part, "name") {
            problems.required(&format!("{at}.name"), "");
        }
    }
}

fn account(account: &Value, path: &str, problems: &mut Problems) {
    let name = text(account, "name");
    if name.is_empty() {
        problems.required(&format!("{path}.name"), "");
    } else if name != "*" {
        for problem in subdomain_problems(name) {
            problems.invalid(&format!("{path}.name"), &name.into(), &problem);
        }
    }
    let at = format!("{path}.namespace");
    let namespace = text(account, "namespace");
    if namespace.is_empty() {
        problems.required(&at, "must specify namespace for service account");
    } else {
        for problem in label_problems(namespace) {
            problems.invalid(&at, &namespace.into(), &problem);
        }
    }
}

/// Checks a list in which `*` may only be alone; returns whether it has others to check.
fn wildcard(rule: &Value, field: &str, path: &str, others: &str, problems: &mut Problems) -> bool {
    let items = list(rule, field);
    let has_all = items.iter().any(|item| item == "*");
    if has_all && items.len() > 1 {
        let detail = format!("if '*' is present, must not specify other {others}");
        let shown = go_text::string_list(&rule[field]);
        problems.invalid_text(&format!("{path}.{field}"), &shown, &detail);
    }
    !has_all
}

fn verbs(rule: &Value, path: &str, problems: &mut Problems) {
    let at = format!("{path}.verbs");
    if is_empty(rule, "verbs") {
        problems.required(&at, "verbs must contain at least one value");
        return;
    }
    let is_known = |verb: &Value| verb.as_str().is_some_and(|verb| VERBS.contains(&verb));
    if wildcard(rule, "verbs", path, "verbs", problems) && !list(rule, "verbs").iter().all(is_known)
    {
        let supported: Vec<String> = VERBS.iter().map(|verb| format!("{verb:?}")).collect();
        not_supported(&at, &go_text::string_list(&rule["verbs"]), &supported.join(", "), problems);
    }
}

fn resource_rule(rule: &Value, path: &str, problems: &mut Problems) {
    verbs(rule, path, problems);
    for (field, one, others) in
        [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")]
    {
        if is_empty(rule, field) {
            let detail = format!("resource rules must supply at least one {one}");
            problems.required(&format!("{path}.{field}"), &detail);
        } else {
            wildcard(rule, field, path, others, problems);
        }
    }
    let at = format!("{path}.namespaces");
    if is_empty(rule, "namespaces") && rule["clusterScope"] != true {
        let detail =
            "resource rules that are not cluster scoped must supply at least one namespace";
        problems.required(&at, detail);
        return;
    }
    if !wildcard(rule, "namespaces", path, "namespaces", problems) {
        return;
    }
    for (index, namespace) in list(rule, "namespaces").iter().enumerate() {
        for problem in label_problems(namespace.as_str().unwrap_or_default()) {
            let detail =
                format!("each member of this list must be '*' or a DNS-1123 label; {problem}");
            problems.invalid(&format!("{at}[{index}]"), namespace, &detail);
        }
    }
}

fn path_rule(rule: &Value, path: &str, problems: &mut Problems) {
    verbs(rule, path, problems);
    let at = format!("{path}.nonResourceURLs");
    if is_empty(rule, "nonResourceURLs") {
        problems.required(&at, "nonResourceURLs must contain at least one value");
        return;
    }
    if !wildcard(rule, "nonResourceURLs", path, "non-resource URLs", problems) {
        return;
    }
    for (index, url) in list(rule, "nonResourceURLs").iter().enumerate() {
        let target = url.as_str().unwrap_or_default();
        let detail = if target.is_empty() {
            "must not be empty"
        } else if target == "/" {
            continue;
        } else if !target.starts_with('/') {
            "must start with slash"
        } else if target.contains(' ') {
            "must not contain white-space"
        } else if target.contains("//") {
            "must not contain double slash"
        } else if target.strip_suffix("/*").unwrap_or(target).contains('*') {
            "wildcard can only do suffix matching"
        } else {
            continue;
        };
        problems.invalid(&format!("{at}[{index}]"), url, detail);
    }
}

fn level(spec: &Value, name: &str, problems: &mut Problems) {
    let kind = text(spec, "type");
    let (limited, exempt) = (&spec["limited"], &spec["exempt"]);
    if (name == "exempt") != (kind == "Exempt") {
        let detail = "type must be 'Exempt' if and only if name is 'exempt'";
        problems.invalid("spec.type", &kind.into(), detail);
    }
    match kind {
        "Exempt" => {
            if limited.is_object() {
                problems.forbidden("spec.limited", "must be nil if the type is not Limited");
            }
            shares(exempt, "spec.exempt", problems);
        }
        "Limited" => {
            if exempt.is_object() {
                problems.forbidden("spec.exempt", "must be nil if the type is Limited");
            }
            if limited.is_object() {
                self::limited(limited, problems);
            } else {
                problems.required("spec.limited", "must not be empty when type is Limited");
            }
        }
        _ => problems.one_of("spec.type", &kind.into(), &["Exempt", "Limited"]),
    }
}

/// Checks the parts of the capacity that a level has and lends.
fn shares(level: &Value, path: &str, problems: &mut Problems) {
    let shares = &level["nominalConcurrencyShares"];
    if shares.as_i64().is_some_and(|shares| shares < 0) {
        let path = format!("{path}.nominalConcurrencyShares");
        problems.invalid(&path, shares, "must be a non-negative integer");
    }
    let lent = &level["lendablePercent"];
    if lent.as_i64().is_some_and(|percent| !(0..=100).contains(&percent)) {
        let detail = "must be between 0 and 100, inclusive";
        problems.invalid(&format!("{path}.lendablePercent"), lent, detail);
    }
}

fn limited(limited: &Value, problems: &mut Problems) {
    let path = "spec.limited";
    shares(limited, path, problems);
    let response = &limited["limitResponse"];
    let queuing = &response["queuing"];
    let at = format!("{path}.limitResponse.queuing");
    match text(response, "type") {
        "Reject" if queuing.is_object() => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            problems.forbidden(&at, detail);
        }
        "Reject" => {}
        "Queue" if !queuing.is_object() => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            problems.required(&at, detail);
        }
        "Queue" => queues(queuing, &at, problems),
        other => {
            let at = format!("{path}.limitResponse.type");
            problems.one_of(&at, &other.into(), &["Queue", "Reject"]);
        }
    }
    let borrowed = &limited["borrowingLimitPercent"];
    if borrowed.as_i64().is_some_and(|percent| percent < 0) {
        let detail = "if specified, must be a non-negative integer";
        problems.invalid(&format!("{path}.borrowingLimitPercent"), borrowed, detail);
    }
}

fn queues(queuing: &Value, path: &str, problems: &mut Problems) {
    let number = |field: &str| queuing[field].as_i64().unwrap_or_default();
    let (queues, hand) = (number("queues"), number("handSize"));
    for field in ["queueLengthLimit", "queues", "handSize"] {
        if number(field) <= 0 {
            problems.invalid(&format!("{path}.{field}"), &number(field).into(), "must be positive");
        }
    }
    if queues > QUEUES_MAX {
        let detail = format!("must not be greater than {QUEUES_MAX}");
        problems.invalid(&format!("{path}.queues"), &queues.into(), &detail);
    }
    if hand > queues && hand > 0 {
        let detail = format!("should not be greater than queues ({queues})");
        problems.invalid(&format!("{path}.handSize"), &hand.into(), &detail);
    }
}
