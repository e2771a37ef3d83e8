//! Rules of containers: ports, environment, mounts, resources, probes, hooks, security.
//!
//! Pure. `pod_spec` passes one container at a time, in upstream's order.

use std::collections::HashSet;

use serde_json::Value;

use super::config::key_problems;
use super::pod_spec::{LABEL_DETAIL, check_port_number, is_label};
use super::{Problems, go_text, resources};
use crate::fields::{is_empty, list, text};
use crate::names::{check_qualified_name, subdomain_problems};

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
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// The common checks of all types of containers.
pub(super) fn common(
    container: &Value,
    path: &str,
    volumes: &HashSet<&str>,
    problems: &mut Problems,
) {
    let name = text(container, "name");
    if name.is_empty() {
        problems.required(&format!("{path}.name"), "");
    } else if !is_label(name) {
        problems.invalid(&format!("{path}.name"), &container["name"], LABEL_DETAIL);
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
    check_mounts(container, path, volumes, problems);
    problems.one_of(
        &format!("{path}.imagePullPolicy"),
        &container["imagePullPolicy"],
        &["Always", "IfNotPresent", "Never"],
    );
    resources::check(&container["resources"], &format!("{path}.resources"), problems);
    security(&container["securityContext"], &format!("{path}.securityContext"), problems);
}

/// Hooks and probes of a container that keeps running.
pub(super) fn life(container: &Value, path: &str, problems: &mut Problems) {
    for hook in ["postStart", "preStop"] {
        let handler = &container["lifecycle"][hook];
        if handler.is_object() {
            self::handler(handler, &format!("{path}.lifecycle.{hook}"), problems);
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
        field_reference(&source["fieldRef"], &format!("{path}.fieldRef"), problems);
    }
    if source["resourceFieldRef"].is_object() {
        count += 1;
        let reference = &source["resourceFieldRef"];
        let at = format!("{path}.resourceFieldRef.resource");
        match text(reference, "resource") {
            "" => problems.required(&at, ""),
            name if name.starts_with("limits.hugepages-")
                || name.starts_with("requests.hugepages-") => {}
            _ => problems.one_of(&at, &reference["resource"], &RESOURCE_FIELDS),
        }
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

fn field_reference(reference: &Value, path: &str, problems: &mut Problems) {
    let field = text(reference, "fieldPath");
    let at = format!("{path}.fieldPath");
    if text(reference, "apiVersion").is_empty() {
        problems.required(&format!("{path}.apiVersion"), "");
    } else if field.is_empty() {
        problems.required(&at, "");
    } else if let Some((place, key)) = subscripted(field) {
        match place {
            "metadata.annotations" | "metadata.labels" => {
                let key = key.to_lowercase();
                if let Err(problem) = check_qualified_name(&key) {
                    problems.invalid(path, &key.into(), &problem);
                }
            }
            _ => {
                let detail = format!(
                    "error converting fieldPath: field label does not support \
                                      subscript: {field}"
                );
                problems.invalid(&at, &reference["fieldPath"], &detail);
            }
        }
    } else if matches!(field, "metadata.annotations" | "metadata.labels") {
        problems.one_of(&at, &reference["fieldPath"], &ENV_FIELDS);
    } else if !ENV_FIELDS.contains(&field) && field != "spec.host" {
        let detail = format!("error converting fieldPath: field label not supported: {field}");
        problems.invalid(&at, &reference["fieldPath"], &detail);
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

fn check_mounts(container: &Value, path: &str, volumes: &HashSet<&str>, problems: &mut Problems) {
    let mut places = HashSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at = format!("{path}.volumeMounts[{index}]");
        let name = text(mount, "name");
        if name.is_empty() {
            problems.required(&format!("{at}.name"), "");
        }
        if !volumes.contains(name) {
            problems.not_found(&format!("{at}.name"), name);
        }
        let place = text(mount, "mountPath");
        if place.is_empty() {
            problems.required(&format!("{at}.mountPath"), "");
        }
        if !places.insert(place) {
            problems.invalid(&format!("{at}.mountPath"), &mount["mountPath"], "must be unique");
        }
        for field in ["subPath", "subPathExpr"] {
            let path = format!("{path}.volumeMounts.{field}");
            if !is_empty(mount, field) {
                descending(&mount[field], &path, problems);
            }
        }
        if !is_empty(mount, "subPath") && !is_empty(mount, "subPathExpr") {
            let detail = "subPathExpr and subPath are mutually exclusive";
            problems.invalid(&format!("{at}.subPathExpr"), &mount["subPathExpr"], detail);
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
    handler(probe, path, problems);
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
    if succeeds_once && probe["successThreshold"].as_i64() != Some(1) {
        let path = format!("{path}.successThreshold");
        problems.invalid(&path, &probe["successThreshold"], "must be 1");
    }
}

fn handler(handler: &Value, path: &str, problems: &mut Problems) {
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
            "httpGet" => {
                if is_empty(action, "path") {
                    problems.required(&format!("{at}.path"), "");
                }
                port_or_name(&action["port"], &format!("{at}.port"), problems);
                problems.one_of(&format!("{at}.scheme"), &action["scheme"], &["HTTP", "HTTPS"]);
            }
            "tcpSocket" => port_or_name(&action["port"], &format!("{at}.port"), problems),
            "grpc" => check_port_number(&action["port"], &format!("{at}.port"), problems),
            _ => {}
        }
    }
    if !is_chosen {
        problems.required(path, "must specify a handler type");
    }
}

fn security(context: &Value, path: &str, problems: &mut Problems) {
    for field in ["runAsUser", "runAsGroup"] {
        account(&context[field], &format!("{path}.{field}"), problems);
    }
    if context["allowPrivilegeEscalation"] == false && context["privileged"] == true {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        problems.invalid_text(path, &go_text::security_context(context), detail);
    }
}

/// Checks the id of a user or group; absent ones are valid.
pub(super) fn account(id: &Value, path: &str, problems: &mut Problems) {
    if id.as_i64().is_some_and(|id| !(0..=i64::from(i32::MAX)).contains(&id)) {
        problems.invalid(path, id, "must be between 0 and 2147483647, inclusive");
    }
}
