//! Rules of containers: ports, environment, mounts, resources, probes, hooks, security.
//!
//! Pure. `pod_spec` passes one container at a time, in upstream's order.

use std::collections::HashSet;

use serde_json::Value;

use super::config::key_problems;
use super::pod_spec::{check_label, check_port_number};
use super::volumes::Volumes;
use super::{Problems, mounts, pod_security, resources};
use crate::fields::{is_empty, list, text};
use crate::names::{qualified_name_problems, subdomain_problems};
use crate::{FieldError, FieldErrorReason};

/// Pod fields that can be used in environment variables.
const ENV_FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCE_FIELDS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const MEMORY_DIVISORS: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// The common checks of all types of containers of a pod.
pub(super) fn common(
    container: &Value,
    path: &str,
    spec: &Value,
    volumes: &Volumes<'_>,
    problems: &mut Problems,
) {
    let name = text(container, "name");
    if name.is_empty() {
        problems.required(&format!("{path}.name"), "");
    } else {
        check_label(name, &format!("{path}.name"), problems);
    }
    if text(container, "image").is_empty() {
        problems.required(&format!("{path}.image"), "");
    }
    problems.one_of(
        &format!("{path}.terminationMessagePolicy"),
        &container["terminationMessagePolicy"],
        &["File", "FallbackToLogsOnError"],
    );
    check_ports(container, path, problems);
    for (index, variable) in list(container, "env").iter().enumerate() {
        self::variable(variable, &format!("{path}.env[{index}]"), problems);
    }
    environment_sources(container, &format!("{path}.envFrom"), problems);
    mounts::check(container, path, volumes, problems);
    problems.one_of(
        &format!("{path}.imagePullPolicy"),
        &container["imagePullPolicy"],
        &["Always", "IfNotPresent", "Never"],
    );
    resources::check(&container["resources"], &format!("{path}.resources"), problems);
    resize_policy(container, &format!("{path}.resizePolicy"), spec, problems);
    let at = format!("{path}.securityContext");
    let has_host_users = spec["hostUsers"] != false;
    pod_security::of_container(&container["securityContext"], &at, has_host_users, problems);
}

fn resize_policy(container: &Value, path: &str, spec: &Value, problems: &mut Problems) {
    let mut seen = HashSet::new();
    for (index, policy) in list(container, "resizePolicy").iter().enumerate() {
        // Go prints the names of resources without quotes.
        let name = text(policy, "resourceName");
        if !seen.insert(name) {
            let message = format!("Duplicate value: {name}");
            let reason = FieldErrorReason::Duplicate;
            problems.found.push(FieldError::new(reason, format!("{path}[{index}]"), message));
        }
        match name {
            "" => problems.required(path, ""),
            "cpu" | "memory" => {}
            _ => {
                let message =
                    format!("Unsupported value: {name}: supported values: \"cpu\", \"memory\"");
                let reason = FieldErrorReason::NotSupported;
                problems.found.push(FieldError::new(reason, path, message));
            }
        }
        if is_empty(policy, "restartPolicy") {
            problems.required(path, "");
        } else {
            let supported = ["NotRequired", "RestartContainer"];
            problems.one_of(path, &policy["restartPolicy"], &supported);
        }
        if spec["restartPolicy"] == "Never" && policy["restartPolicy"] != "NotRequired" {
            let detail = "must be 'NotRequired' when `restartPolicy` is 'Never'";
            problems.invalid(path, &policy["restartPolicy"], detail);
        }
    }
}

/// Hooks and probes of a container that keeps running.
pub(super) fn life(container: &Value, path: &str, spec: &Value, problems: &mut Problems) {
    let grace = spec["terminationGracePeriodSeconds"].as_i64();
    for hook in ["postStart", "preStop"] {
        let handler = &container["lifecycle"][hook];
        if handler.is_object() {
            self::handler(handler, &format!("{path}.lifecycle.{hook}"), grace, problems);
        }
    }
    for name in PROBES {
        let probe = &container[name];
        if probe.is_object() {
            self::probe(probe, &format!("{path}.{name}"), name != "readinessProbe", problems);
        }
    }
}

/// Rejects hooks and probes of a container that runs only once.
pub(super) fn no_life(container: &Value, path: &str, problems: &mut Problems) {
    for field in ["lifecycle"].iter().chain(&PROBES) {
        if container[*field].is_object() {
            let detail = "may not be set for init containers without restartPolicy=Always";
            problems.forbidden(&format!("{path}.{field}"), detail);
        }
    }
}

/// Checks that each host port is used only once.
pub(super) fn host_ports(containers: &[Value], path: &str, problems: &mut Problems) {
    let mut taken = HashSet::new();
    for (index, container) in containers.iter().enumerate() {
        for (place, port) in list(container, "ports").iter().enumerate() {
            let number = port["hostPort"].as_i64().unwrap_or_default();
            if number == 0 {
                continue;
            }
            let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if !taken.insert(key.clone()) {
                let path = format!("{path}[{index}].ports[{place}].hostPort");
                problems.duplicate(&path, &key.into());
            }
        }
    }
}

fn check_ports(container: &Value, path: &str, problems: &mut Problems) {
    let mut names = HashSet::new();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        let name = text(port, "name");
        if !name.is_empty() {
            let wrong = port_name_problems(name);
            for problem in &wrong {
                problems.invalid(&format!("{path}.name"), &port["name"], problem);
            }
            if wrong.is_empty() && !names.insert(name) {
                problems.duplicate(&format!("{path}.name"), &port["name"]);
            }
        }
        if port["containerPort"].as_i64().unwrap_or_default() == 0 {
            problems.required(&format!("{path}.containerPort"), "");
        } else {
            check_port_number(&port["containerPort"], &format!("{path}.containerPort"), problems);
        }
        if port["hostPort"].as_i64().unwrap_or_default() != 0 {
            check_port_number(&port["hostPort"], &format!("{path}.hostPort"), problems);
        }
        let protocols = ["SCTP", "TCP", "UDP"];
        problems.one_of(&format!("{path}.protocol"), &port["protocol"], &protocols);
    }
}

/// The problems with the name of a port.
pub(super) fn port_name_problems(name: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    if name.len() > 15 {
        found.push("must be no more than 15 characters");
    }
    let is_allowed = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-'
    };
    if !name.chars().all(is_allowed) {
        found.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.chars().any(|character| character.is_ascii_lowercase()) {
        found.push("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        found.push("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        found.push("must not begin or end with a hyphen");
    }
    found
}

/// Checks a port number or name.
pub(super) fn port_or_name(port: &Value, path: &str, problems: &mut Problems) {
    match port.as_str() {
        Some(name) => {
            for problem in port_name_problems(name) {
                problems.invalid(path, port, problem);
            }
        }
        None => check_port_number(port, path, problems),
    }
}

fn variable(variable: &Value, path: &str, problems: &mut Problems) {
    let name = text(variable, "name");
    if name.is_empty() {
        problems.required(&format!("{path}.name"), "");
    } else {
        variable_name(&variable["name"], &format!("{path}.name"), problems);
    }
    if variable["valueFrom"].is_object() {
        variable_source(variable, &format!("{path}.valueFrom"), problems);
    }
}

fn variable_name(name: &Value, path: &str, problems: &mut Problems) {
    let is_fine = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'=';
    if !name.as_str().unwrap_or_default().bytes().all(is_fine) {
        let detail = "a valid environment variable name must consist only of printable ASCII \
                      characters other than '='";
        problems.invalid(path, name, detail);
    }
}

fn variable_source(variable: &Value, path: &str, problems: &mut Problems) {
    let source = &variable["valueFrom"];
    let mut count = 0;
    if source["fieldRef"].is_object() {
        count += 1;
        let at = format!("{path}.fieldRef");
        field_reference(&source["fieldRef"], &at, &ENV_FIELDS, problems);
    }
    if source["resourceFieldRef"].is_object() {
        count += 1;
        let at = format!("{path}.resourceFieldRef");
        resource_reference(&source["resourceFieldRef"], &at, false, problems);
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        if source[kind].is_object() {
            count += 1;
            key_reference(&source[kind], &format!("{path}.{kind}"), problems);
        }
    }
    let detail = if count == 0 {
        "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
    } else if !text(variable, "value").is_empty() {
        "may not be specified when `value` is not empty"
    } else if count > 1 {
        "may not have more than one field specified at a time"
    } else {
        return;
    };
    problems.invalid(path, &"".into(), detail);
}

/// Checks a reference to a field of the pod; `supported` are those without a key.
pub(super) fn field_reference(
    reference: &Value,
    path: &str,
    supported: &[&str],
    problems: &mut Problems,
) {
    let field = text(reference, "fieldPath");
    let version = text(reference, "apiVersion");
    let at = format!("{path}.fieldPath");
    if version.is_empty() {
        problems.required(&format!("{path}.apiVersion"), "");
        return;
    }
    if field.is_empty() {
        problems.required(&at, "");
        return;
    }
    let mut unknown = |problem: &str| {
        let detail = format!("error converting fieldPath: {problem}");
        problems.invalid(&at, &field.into(), &detail);
    };
    if version != "v1" {
        unknown(&format!("unsupported pod version: {version}"));
    } else if let Some((place, key)) = subscripted(field) {
        let key = match place {
            "metadata.annotations" => key.to_lowercase(),
            "metadata.labels" => key.to_owned(),
            _ => return unknown(&format!("field label does not support subscript: {field}")),
        };
        for problem in qualified_name_problems(&key) {
            problems.invalid(path, &key.as_str().into(), &problem);
        }
    } else if !is_downward_field(field) {
        unknown(&format!("field label not supported: {field}"));
    } else if field != "spec.host" && !supported.contains(&field) {
        problems.one_of(&at, &field.into(), supported);
    }
}

/// Whether any container or volume may refer to a field.
fn is_downward_field(field: &str) -> bool {
    ENV_FIELDS.contains(&field)
        || matches!(field, "metadata.annotations" | "metadata.labels" | "spec.host")
}

/// Checks a reference to a request or limit, which names its container in volumes.
pub(super) fn resource_reference(
    reference: &Value,
    path: &str,
    is_volume: bool,
    problems: &mut Problems,
) {
    let name = text(reference, "resource");
    let at = format!("{path}.resource");
    let is_huge_page =
        name.starts_with("limits.hugepages-") || name.starts_with("requests.hugepages-");
    if is_volume && is_empty(reference, "containerName") {
        problems.required(&format!("{path}.containerName"), "");
    } else if name.is_empty() {
        problems.required(&at, "");
    } else if !is_huge_page {
        problems.one_of(&at, &reference["resource"], &RESOURCE_FIELDS);
    }
    let divisor = text(reference, "divisor");
    if divisor.is_empty() || divisor == "0" {
        return;
    }
    let (units, kind) = match name.split_once('.').map_or("", |(_, resource)| resource) {
        "cpu" => ("1m and 1", "cpu"),
        "memory" => (MEMORY_DIVISORS, "memory"),
        "ephemeral-storage" => (MEMORY_DIVISORS, "local ephemeral storage"),
        _ if is_huge_page => (MEMORY_DIVISORS, "hugepages"),
        _ => return,
    };
    if !units.split([',', ' ']).any(|unit| unit == divisor) {
        let detail =
            format!("only divisor's values {units} are supported with the {kind} resource");
        problems.invalid(&format!("{path}.divisor"), &name.into(), &detail);
    }
}

/// `metadata.labels` and `app` of `metadata.labels['app']`.
fn subscripted(field: &str) -> Option<(&str, &str)> {
    field.strip_suffix("']")?.split_once("['")
}

fn key_reference(reference: &Value, path: &str, problems: &mut Problems) {
    for problem in subdomain_problems(text(reference, "name")) {
        problems.invalid(&format!("{path}.name"), &text(reference, "name").into(), &problem);
    }
    let key = text(reference, "key");
    if key.is_empty() {
        problems.required(&format!("{path}.key"), "");
        return;
    }
    for problem in key_problems(key) {
        problems.invalid(&format!("{path}.key"), &reference["key"], &problem);
    }
}

fn environment_sources(container: &Value, path: &str, problems: &mut Problems) {
    for (index, source) in list(container, "envFrom").iter().enumerate() {
        let at = format!("{path}[{index}]");
        if !is_empty(source, "prefix") {
            variable_name(&source["prefix"], &format!("{at}.prefix"), problems);
        }
        let mut count = 0;
        for kind in ["configMapRef", "secretRef"] {
            if !source[kind].is_object() {
                continue;
            }
            count += 1;
            let name = text(&source[kind], "name");
            if name.is_empty() {
                problems.required(&format!("{at}.{kind}.name"), "");
                continue;
            }
            for problem in subdomain_problems(name) {
                problems.invalid(&format!("{at}.{kind}.name"), &name.into(), &problem);
            }
        }
        // Upstream reports the list here, not the item.
        if count == 0 {
            let detail = "must specify one of: `configMapRef` or `secretRef`";
            problems.invalid(path, &"".into(), detail);
        } else if count > 1 {
            let detail = "may not have more than one field specified at a time";
            problems.invalid(path, &"".into(), detail);
        }
    }
}

/// Checks that a path is relative and does not leave its directory.
pub(super) fn descending(path: &Value, at: &str, problems: &mut Problems) {
    if path.as_str().is_some_and(|path| path.starts_with('/')) {
        problems.invalid(at, path, "must be a relative path");
    }
    no_backsteps(path, at, problems);
}

/// Checks that a path has no `..`.
pub(super) fn no_backsteps(path: &Value, at: &str, problems: &mut Problems) {
    if path.as_str().unwrap_or_default().split('/').any(|step| step == "..") {
        problems.invalid(at, path, "must not contain '..'");
    }
}

fn probe(probe: &Value, path: &str, succeeds_once: bool, problems: &mut Problems) {
    handler(probe, path, None, problems);
    for field in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        problems.not_negative(&format!("{path}.{field}"), &probe[field]);
    }
    let grace = &probe["terminationGracePeriodSeconds"];
    if grace.as_i64().is_some_and(|seconds| seconds <= 0) {
        let path = format!("{path}.terminationGracePeriodSeconds");
        problems.invalid(&path, grace, "must be greater than 0");
    }
    if !succeeds_once && !grace.is_null() {
        let path = format!("{path}.terminationGracePeriodSeconds");
        problems.invalid(&path, grace, "must not be set for readinessProbes");
    }
    if succeeds_once && probe["successThreshold"].as_i64() != Some(1) {
        let path = format!("{path}.successThreshold");
        problems.invalid(&path, &probe["successThreshold"], "must be 1");
    }
}

fn handler(handler: &Value, path: &str, grace: Option<i64>, problems: &mut Problems) {
    let mut is_chosen = false;
    for kind in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let action = &handler[kind];
        if !action.is_object() {
            continue;
        }
        let at = format!("{path}.{kind}");
        if is_chosen {
            problems.forbidden(&at, "may not specify more than 1 handler type");
            continue;
        }
        is_chosen = true;
        match kind {
            "exec" if is_empty(action, "command") => {
                problems.required(&format!("{at}.command"), "")
            }
            "httpGet" => http_action(action, &at, problems),
            "tcpSocket" => port_or_name(&action["port"], &format!("{at}.port"), problems),
            "grpc" => check_port_number(&action["port"], &format!("{at}.port"), problems),
            "sleep" => sleep_action(action, &at, grace, problems),
            _ => {}
        }
    }
    if !is_chosen {
        problems.required(path, "must specify a handler type");
    }
}

fn http_action(action: &Value, path: &str, problems: &mut Problems) {
    if is_empty(action, "path") {
        problems.required(&format!("{path}.path"), "");
    }
    port_or_name(&action["port"], &format!("{path}.port"), problems);
    problems.one_of(&format!("{path}.scheme"), &action["scheme"], &["HTTP", "HTTPS"]);
    for header in list(action, "httpHeaders") {
        let name = text(header, "name");
        let is_fine = |character: char| character.is_ascii_alphanumeric() || character == '-';
        if name.is_empty() || !name.chars().all(is_fine) {
            let detail = "a valid HTTP header must consist of alphanumeric characters or '-' \
                          (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
            problems.invalid(&format!("{path}.httpHeaders"), &name.into(), detail);
        }
    }
}

fn sleep_action(action: &Value, path: &str, grace: Option<i64>, problems: &mut Problems) {
    let seconds = action["seconds"].as_i64().unwrap_or_default();
    let Some(grace) = grace else { return };
    if seconds < 0 || seconds > grace {
        let detail =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        problems.invalid(path, &seconds.into(), &detail);
    }
}
