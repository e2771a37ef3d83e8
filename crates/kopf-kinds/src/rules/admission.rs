//! Rules of webhook configurations, admission policies and their bindings.
//!
//! Pure. `schema::cel` compiles expressions, with the error messages of upstream's compiler.

use std::collections::HashSet;

use serde_json::Value;

use super::{Problems, go_text, labels, mutations};
use crate::fields::{is_empty, list, text};
use crate::names::{
    check_qualified_name, name_problem, qualified_name_problems, subdomain_problems,
};
use crate::schema::cel::{Wanted, condition_problem};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const MATCH_CONDITIONS_MAX: usize = 64;
const AUDIT_ANNOTATIONS_MAX: usize = 20;
/// The variables of every expression.
const VARIABLES: [&str; 4] = ["object", "oldObject", "request", "namespaceObject"];

pub(super) fn check(resource: &str, object: &Value, problems: &mut Problems) {
    match resource {
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => {
            webhooks(object, problems);
        }
        "validatingadmissionpolicies" => policy(object, problems),
        "validatingadmissionpolicybindings" => binding(&object["spec"], problems),
        "mutatingadmissionpolicies" => mutations::policy(&object["spec"], problems),
        "mutatingadmissionpolicybindings" => reference(&object["spec"], problems),
        _ => {}
    }
}

fn webhooks(object: &Value, problems: &mut Problems) {
    let mut names = HashSet::new();
    for (index, webhook) in list(object, "webhooks").iter().enumerate() {
        let path = format!("webhooks[{index}]");
        self::webhook(webhook, &path, problems);
        review_versions(webhook, &path, problems);
        let name = text(webhook, "name");
        if !name.is_empty() && !names.insert(name) {
            problems.duplicate(&format!("{path}.name"), &webhook["name"]);
        }
    }
}

fn webhook(webhook: &Value, path: &str, problems: &mut Problems) {
    qualified_domain(&webhook["name"], &format!("{path}.name"), problems);
    for (index, rule) in list(webhook, "rules").iter().enumerate() {
        self::rule(rule, &format!("{path}.rules[{index}]"), problems);
    }
    problems.one_of_if_set(webhook, path, "failurePolicy", &["Fail", "Ignore"]);
    problems.one_of_if_set(webhook, path, "matchPolicy", &["Equivalent", "Exact"]);
    if webhook["sideEffects"].is_null() {
        let detail = "must specify one of None, NoneOnDryRun";
        problems.required(&format!("{path}.sideEffects"), detail);
    }
    problems.one_of_if_set(webhook, path, "sideEffects", &["None", "NoneOnDryRun"]);
    if let Some(timeout) = webhook["timeoutSeconds"].as_i64()
        && !(1..=30).contains(&timeout)
    {
        problems.invalid(
            &format!("{path}.timeoutSeconds"),
            &webhook["timeoutSeconds"],
            "the timeout value must be between 1 and 30 seconds",
        );
    }
    for selector in ["namespaceSelector", "objectSelector"] {
        labels::check(&webhook[selector], &format!("{path}.{selector}"), problems);
    }
    problems.one_of_if_set(webhook, path, "reinvocationPolicy", &["IfNeeded", "Never"]);
    client(&webhook["clientConfig"], &format!("{path}.clientConfig"), problems);
    conditions(webhook, path, &[], problems);
}

/// Checks that a name has at least three labels.
fn qualified_domain(name: &Value, path: &str, problems: &mut Problems) {
    let name_text = name.as_str().unwrap_or_default();
    if name_text.is_empty() {
        problems.required(path, "");
        return;
    }
    let shape = subdomain_problems(name_text);
    if !shape.is_empty() {
        problems.invalid(path, name, &shape.join(","));
    } else if name_text.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        problems.invalid(path, name, detail);
    }
}

fn client(config: &Value, path: &str, problems: &mut Problems) {
    match (config["url"].as_str(), config["service"].is_object()) {
        (Some(_), true) | (None, false) => {
            problems.required(path, "exactly one of url or service is required");
        }
        (Some(url), false) => self::url(url, &format!("{path}.url"), problems),
        (None, true) => service(&config["service"], &format!("{path}.service"), problems),
    }
}

fn url(url: &str, path: &str, problems: &mut Problems) {
    const FORM: &str = "desired format: https://host[/path]";
    let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (url, query) = url.split_once('?').unwrap_or((url, ""));
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme; {FORM}");
        problems.invalid(path, &scheme.into(), &detail);
    }
    let authority = match scheme {
        "" => "",
        _ => rest.split('/').next().unwrap_or_default(),
    };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() {
        problems.invalid(path, &host.into(), &format!("host must be specified; {FORM}"));
    }
    for (part, detail) in [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ] {
        if !part.is_empty() {
            problems.invalid(path, &part.into(), detail);
        }
    }
}

fn service(service: &Value, path: &str, problems: &mut Problems) {
    // Upstream's caller swaps the two parameters, which affects only the messages.
    for (field, wanted) in [("name", "namespace"), ("namespace", "name")] {
        if text(service, wanted).is_empty() {
            let detail = format!("service {field} is required");
            problems.required(&format!("{path}.{field}"), &detail);
        }
    }
    if !service["port"].as_i64().is_some_and(|port| (1..=65535).contains(&port)) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        problems.invalid(&format!("{path}.port"), &service["port"], detail);
    }
    let place = text(service, "path");
    let path = format!("{path}.path");
    match place {
        "" | "/" => return,
        "//" => {
            problems.invalid(&path, &service["path"], "segment[0] may not be empty");
            return;
        }
        _ if !place.starts_with('/') => {
            problems.invalid(&path, &service["path"], "must start with a '/'");
        }
        _ => {}
    }
    let mut characters = place.chars();
    characters.next();
    let inner = characters.as_str();
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    for (index, segment) in inner.split('/').enumerate() {
        if segment.is_empty() {
            let detail = format!("segment[{index}] may not be empty");
            problems.invalid(&path, &service["path"], &detail);
            continue;
        }
        for failure in subdomain_problems(segment) {
            let detail = format!("segment[{index}]: {failure}");
            problems.invalid(&path, &service["path"], &detail);
        }
    }
}

fn review_versions(webhook: &Value, path: &str, problems: &mut Problems) {
    let path = format!("{path}.admissionReviewVersions");
    let versions = list(webhook, "admissionReviewVersions");
    if versions.is_empty() {
        problems.required(&path, "must specify one of v1, v1beta1");
        return;
    }
    let mut seen = HashSet::new();
    for (index, version) in versions.iter().enumerate() {
        let name = version.as_str().unwrap_or_default();
        if !seen.insert(name) {
            problems.invalid(&format!("{path}[{index}]"), version, "duplicate version");
            continue;
        }
        for problem in name_problem("", "services", name, false) {
            problems.invalid(&format!("{path}[{index}]"), version, &problem);
        }
    }
    if !seen.contains("v1") && !seen.contains("v1beta1") {
        let shown = go_text::string_list(&webhook["admissionReviewVersions"]);
        problems.invalid_text(&path, &shown, "must include at least one of v1, v1beta1");
    }
}

fn rule(rule: &Value, path: &str, problems: &mut Problems) {
    let alone = |field: &str, what: &str, problems: &mut Problems| {
        let values = list(rule, field);
        if values.is_empty() {
            problems.required(&format!("{path}.{field}"), "");
        }
        if values.len() > 1 && values.iter().any(|value| value == "*") {
            let mut shown = go_text::string_list(&rule[field]);
            if field == "operations" {
                shown = shown.replacen("[]string", "[]admissionregistration.OperationType", 1);
            }
            let detail = format!("if '*' is present, must not specify other {what}");
            problems.invalid_text(&format!("{path}.{field}"), &shown, &detail);
        }
    };
    alone("operations", "operations", problems);
    for (index, operation) in list(rule, "operations").iter().enumerate() {
        problems.one_of(&format!("{path}.operations[{index}]"), operation, &OPERATIONS);
    }
    alone("apiGroups", "API groups", problems);
    alone("apiVersions", "API versions", problems);
    for (index, version) in list(rule, "apiVersions").iter().enumerate() {
        if version == "" {
            problems.required(&format!("{path}.apiVersions[{index}]"), "");
        }
    }
    resources(rule, &format!("{path}.resources"), problems);
    problems.one_of_if_set(rule, path, "scope", &["*", "Cluster", "Namespaced"]);
}

fn resources(rule: &Value, path: &str, problems: &mut Problems) {
    let resources = list(rule, "resources");
    if resources.is_empty() {
        problems.required(path, "");
    }
    let (mut whole, mut everywhere) = (HashSet::new(), HashSet::new());
    let mut has_plain = false;
    for (index, resource) in resources.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let name = resource.as_str().unwrap_or_default();
        if name.is_empty() {
            problems.required(&path, "");
            continue;
        }
        let Some((plural, subresource)) = name.split_once('/') else {
            has_plain = name != "*";
            continue;
        };
        if whole.contains(plural) {
            let detail = format!("if '{plural}/*' is present, must not specify {name}");
            problems.invalid(&path, resource, &detail);
        }
        if everywhere.contains(subresource) {
            let detail = format!("if '*/{subresource}' is present, must not specify {name}");
            problems.invalid(&path, resource, &detail);
        }
        if subresource == "*" {
            whole.insert(plural);
        }
        if plural == "*" {
            everywhere.insert(subresource);
        }
    }
    let has = |name: &str| resources.iter().any(|resource| resource == name);
    let shown = go_text::string_list(&rule["resources"]);
    if resources.len() > 1 && has("*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        problems.invalid_text(path, &shown, detail);
    }
    if has("*") && has_plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        problems.invalid_text(path, &shown, detail);
    }
}

/// Conditions of a webhook or a policy; `more` are additional variables.
fn conditions(owner: &Value, path: &str, more: &[&str], problems: &mut Problems) {
    let path = format!("{path}.matchConditions");
    let conditions = list(owner, "matchConditions");
    if conditions.len() > MATCH_CONDITIONS_MAX {
        problems.too_many(&path, conditions.len(), MATCH_CONDITIONS_MAX);
    }
    let mut names = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let expression = text(condition, "expression").trim();
        let at = format!("{path}.expression");
        if expression.is_empty() {
            problems.required(&at, "");
        } else {
            let scope = Scope { names: [&["authorizer"], more].concat(), variables: None };
            compile(expression, &scope, Wanted::Boolean, &at, problems);
        }
        let name = text(condition, "name");
        let at = format!("{path}.name");
        if name.is_empty() {
            problems.required(&at, "");
        } else if let Err(problem) = check_qualified_name(name) {
            problems.invalid(&at, &condition["name"], &problem);
        }
        if !name.is_empty() && !names.insert(name) {
            problems.duplicate(&at, &condition["name"]);
        }
    }
}

/// The additional variables of an expression.
pub(super) struct Scope<'v> {
    names: Vec<&'v str>,
    /// The variables of a policy; `None` outside of policies.
    variables: Option<Vec<&'v str>>,
}

/// Reports the errors of upstream's compiler about an expression.
pub(super) fn compile(
    source: &str,
    scope: &Scope<'_>,
    wanted: Wanted,
    path: &str,
    problems: &mut Problems,
) {
    let names = [&VARIABLES, scope.names.as_slice()].concat();
    if let Some(problem) = condition_problem(source, &names, scope.variables.as_deref(), wanted) {
        problems.invalid(path, &source.into(), &problem);
    }
}

fn policy(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    let scope = matching(spec, problems);
    let is_idle = is_empty(spec, "validations") && is_empty(spec, "auditAnnotations");
    if is_idle {
        let detail = "validations or auditAnnotations must contain at least one item";
        problems.required("spec.validations", detail);
        problems.required("spec.auditAnnotations", detail);
        return;
    }
    for (index, validation) in list(spec, "validations").iter().enumerate() {
        self::validation(validation, &format!("spec.validations[{index}]"), &scope, problems);
    }
    audit_annotations(object, &scope, problems);
}

/// The common parts of both types of policies: match constraints and variables.
pub(super) fn matching<'v>(spec: &'v Value, problems: &mut Problems) -> Scope<'v> {
    problems.one_of("spec.failurePolicy", &spec["failurePolicy"], &["Fail", "Ignore"]);
    let has_params = spec["paramKind"].is_object();
    if has_params {
        for field in ["apiVersion", "kind"] {
            if is_empty(&spec["paramKind"], field) {
                problems.required(&format!("spec.paramKind.{field}"), "");
            }
        }
    }
    if spec["matchConstraints"].is_object() {
        match_resources(&spec["matchConstraints"], "spec.matchConstraints", problems);
        if is_empty(&spec["matchConstraints"], "resourceRules") {
            problems.required("spec.matchConstraints.resourceRules", "");
        }
    } else {
        problems.required("spec.matchConstraints", "");
    }
    let params: &[&str] = if has_params { &["params"] } else { &[] };
    conditions(spec, "spec", params, problems);
    variables(spec, params, problems)
}

/// Checks the variables; each is visible to the expressions after it.
fn variables<'v>(spec: &'v Value, params: &[&'static str], problems: &mut Problems) -> Scope<'v> {
    let mut scope = Scope { names: [&["authorizer"], params].concat(), variables: Some(vec![]) };
    for (index, variable) in list(spec, "variables").iter().enumerate() {
        let path = format!("spec.variables[{index}]");
        let name = text(variable, "name");
        let is_identifier = name
            .starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
        if name.trim().is_empty() {
            problems.required(&format!("{path}.name"), "name is not specified");
        } else if !is_identifier {
            let detail = "name is not a valid CEL identifier";
            problems.invalid(&format!("{path}.name"), &variable["name"], detail);
        }
        let expression = text(variable, "expression");
        let path = format!("{path}.expression");
        if expression.trim().is_empty() {
            problems.required(&path, "expression is not specified");
        } else {
            compile(expression, &scope, Wanted::Anything, &path, problems);
        }
        scope.variables.get_or_insert_default().push(name);
    }
    scope
}

fn validation(validation: &Value, path: &str, scope: &Scope<'_>, problems: &mut Problems) {
    const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
    let expression = text(validation, "expression");
    if expression.trim().is_empty() {
        problems.required(&format!("{path}.expression"), "expression is not specified");
    } else {
        compile(expression, scope, Wanted::Boolean, &format!("{path}.expression"), problems);
    }
    let words = text(validation, "messageExpression");
    if !words.is_empty() {
        let at = format!("{path}.messageExpression");
        if words.trim().is_empty() {
            let detail = "must be non-empty if specified";
            problems.invalid(&at, &validation["messageExpression"], detail);
        } else {
            compile(words, scope, Wanted::Text, &at, problems);
        }
    }
    let message = text(validation, "message");
    let at = format!("{path}.message");
    if !message.is_empty() && message.trim().is_empty() {
        let detail = "message must be non-empty if specified";
        problems.invalid(&at, &validation["message"], detail);
    } else if message.trim().contains(['\n', '\r']) {
        problems.invalid(&at, &validation["message"], "message must not contain line breaks");
    }
    problems.one_of_if_set(validation, path, "reason", &REASONS);
}

fn audit_annotations(object: &Value, scope: &Scope<'_>, problems: &mut Problems) {
    let annotations = list(&object["spec"], "auditAnnotations");
    if annotations.len() > AUDIT_ANNOTATIONS_MAX {
        let detail = format!("must not have more than {AUDIT_ANNOTATIONS_MAX} auditAnnotations");
        problems.invalid("spec.auditAnnotations", &object["spec"]["auditAnnotations"], &detail);
    }
    let mut keys = HashSet::new();
    for (index, annotation) in annotations.iter().enumerate() {
        let path = format!("spec.auditAnnotations[{index}]");
        let key = text(annotation, "key");
        let name = format!("{}/{key}", text(&object["metadata"], "name"));
        for problem in qualified_name_problems(&name) {
            problems.invalid(&format!("{path}.key"), &name.as_str().into(), &problem);
        }
        let expression = text(annotation, "valueExpression").trim();
        let at = format!("{path}.valueExpression");
        if expression.is_empty() {
            problems.required(&at, "valueExpression is not specified");
        } else {
            compile(expression, scope, Wanted::TextOrNull, &at, problems);
        }
        if !keys.insert(key) {
            problems.duplicate(&format!("{path}.key"), &annotation["key"]);
        }
    }
}

fn match_resources(matching: &Value, path: &str, problems: &mut Problems) {
    let policies = ["Equivalent", "Exact"];
    problems.one_of(&format!("{path}.matchPolicy"), &matching["matchPolicy"], &policies);
    for selector in ["namespaceSelector", "objectSelector"] {
        labels::check(&matching[selector], &format!("{path}.{selector}"), problems);
    }
    for rules in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in list(matching, rules).iter().enumerate() {
            self::rule(rule, &format!("{path}.{rules}[{index}]"), problems);
        }
    }
}

fn binding(spec: &Value, problems: &mut Problems) {
    reference(spec, problems);
    actions(spec, problems);
}

/// The common parts of both types of bindings: policy, parameters, match resources.
pub(super) fn reference(spec: &Value, problems: &mut Problems) {
    let name = text(spec, "policyName");
    if name.is_empty() {
        problems.required("spec.policyName", "");
    } else {
        for problem in subdomain_problems(name) {
            problems.invalid("spec.policyName", &spec["policyName"], &problem);
        }
    }
    if spec["paramRef"].is_object() {
        param_ref(&spec["paramRef"], problems);
    }
    if spec["matchResources"].is_object() {
        match_resources(&spec["matchResources"], "spec.matchResources", problems);
    }
}

fn actions(spec: &Value, problems: &mut Problems) {
    let actions = list(spec, "validationActions");
    let mut seen = HashSet::new();
    for (index, action) in actions.iter().enumerate() {
        let path = format!("spec.validationActions[{index}]");
        problems.one_of(&path, action, &["Audit", "Deny", "Warn"]);
        if !seen.insert(action.as_str().unwrap_or_default()) {
            problems.duplicate(&path, action);
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let shown: Vec<String> = actions.iter().map(|action| action.to_string()).collect();
        let shown = format!("[]admissionregistration.ValidationAction{{{}}}", shown.join(", "));
        let detail = "must not contain both Deny and Warn (repeating the same validation failure \
                      information in the API response and headers serves no purpose)";
        problems.invalid_text("spec.validationActions", &shown, detail);
    }
    if actions.is_empty() {
        let detail = "at least one validation action is required";
        problems.required("spec.validationActions", detail);
    }
}

fn param_ref(reference: &Value, problems: &mut Problems) {
    let exclusive = "name and selector are mutually exclusive";
    let (has_name, has_selector) =
        (!is_empty(reference, "name"), reference["selector"].is_object());
    if has_name && has_selector {
        problems.forbidden("spec.paramRef.name", exclusive);
    }
    if has_selector {
        labels::check(&reference["selector"], "spec.paramRef.selector", problems);
        if has_name {
            problems.forbidden("spec.paramRef.selector", exclusive);
        }
    }
    if !has_name && !has_selector {
        problems.required("spec.paramRef", "one of name or selector must be specified");
    }
    let at = "spec.paramRef.parameterNotFoundAction";
    if is_empty(reference, "parameterNotFoundAction") {
        problems.required(at, "");
    } else {
        problems.one_of(at, &reference["parameterNotFoundAction"], &["Deny", "Allow"]);
    }
}
