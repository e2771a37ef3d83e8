//! Rules of pod specs, wherever they appear.

use std::collections::HashSet;

use serde_json::Value;

use super::Problems;
use crate::kinds::fields::{list, text};
use crate::kinds::quantity::Quantity;

pub(super) const LABEL_DETAIL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
    characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
    '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// The problems of a pod spec at `path`.
pub(super) fn check(spec: &Value, path: &str, problems: &mut Problems) {
    let volumes = check_volumes(spec, path, problems);
    let containers = list(spec, "containers");
    if containers.is_empty() {
        problems.required(&format!("{path}.containers"), "");
    }
    let mut names = HashSet::new();
    for field in ["containers", "initContainers"] {
        for (index, container) in list(spec, field).iter().enumerate() {
            let path = format!("{path}.{field}[{index}]");
            check_name(container, &path, &mut names, problems);
            check_container(container, &path, &volumes, problems);
        }
    }
    let restart_policies = ["Always", "OnFailure", "Never"];
    problems.one_of(&format!("{path}.restartPolicy"), &spec["restartPolicy"], &restart_policies);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    problems.one_of(&format!("{path}.dnsPolicy"), &spec["dnsPolicy"], &policies);
    problems.not_negative(
        &format!("{path}.terminationGracePeriodSeconds"),
        &spec["terminationGracePeriodSeconds"],
    );
    if let Some(deadline) = spec["activeDeadlineSeconds"].as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&deadline)
    {
        problems.invalid(
            &format!("{path}.activeDeadlineSeconds"),
            &spec["activeDeadlineSeconds"],
            "must be between 1 and 2147483647, inclusive",
        );
    }
}

fn check_volumes<'spec>(
    spec: &'spec Value,
    path: &str,
    problems: &mut Problems,
) -> HashSet<&'spec str> {
    let mut names = HashSet::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = format!("{path}.volumes[{index}].name");
        let name = text(volume, "name");
        if name.is_empty() {
            problems.required(&path, "");
        } else if !is_label(name) {
            problems.invalid(&path, &volume["name"], LABEL_DETAIL);
        } else if !names.insert(name) {
            problems.duplicate(&path, &volume["name"]);
        }
    }
    names
}

fn check_name<'spec>(
    container: &'spec Value,
    path: &str,
    names: &mut HashSet<&'spec str>,
    problems: &mut Problems,
) {
    let path = format!("{path}.name");
    let name = text(container, "name");
    if name.is_empty() {
        problems.required(&path, "");
    } else if !is_label(name) {
        problems.invalid(&path, &container["name"], LABEL_DETAIL);
    } else if !names.insert(name) {
        problems.duplicate(&path, &container["name"]);
    }
}

pub(super) fn is_label(name: &str) -> bool {
    let is_word = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    name.len() <= 63
        && name.starts_with(is_word)
        && name.ends_with(is_word)
        && name.chars().all(|character| is_word(character) || character == '-')
}

fn check_container(
    container: &Value,
    path: &str,
    volumes: &HashSet<&str>,
    problems: &mut Problems,
) {
    let image = text(container, "image");
    if image.is_empty() {
        problems.required(&format!("{path}.image"), "");
    } else if image.trim() != image {
        problems.invalid(
            &format!("{path}.image"),
            &container["image"],
            "must not have leading or trailing whitespace",
        );
    }
    problems.one_of(
        &format!("{path}.terminationMessagePolicy"),
        &container["terminationMessagePolicy"],
        &["FallbackToLogsOnError", "File"],
    );
    check_ports(container, path, problems);
    for (index, variable) in list(container, "env").iter().enumerate() {
        let path = format!("{path}.env[{index}]");
        if text(variable, "name").is_empty() {
            problems.required(&format!("{path}.name"), "");
        }
        if variable["valueFrom"].is_object() && !text(variable, "value").is_empty() {
            problems.invalid(
                &format!("{path}.valueFrom"),
                &"".into(),
                "may not be specified when `value` is not empty",
            );
        }
    }
    check_mounts(container, path, volumes, problems);
    problems.one_of(
        &format!("{path}.imagePullPolicy"),
        &container["imagePullPolicy"],
        &["Always", "IfNotPresent", "Never"],
    );
    check_resources(&container["resources"], &format!("{path}.resources"), problems);
}

fn check_ports(container: &Value, path: &str, problems: &mut Problems) {
    let mut names = HashSet::new();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        let name = text(port, "name");
        if !name.is_empty() && !names.insert(name) {
            problems.duplicate(&format!("{path}.name"), &port["name"]);
        }
        let number = port["containerPort"].as_i64().unwrap_or_default();
        if number == 0 {
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

pub(super) fn check_port_number(port: &Value, path: &str, problems: &mut Problems) {
    if !port.as_i64().is_some_and(|number| (1..=65535).contains(&number)) {
        problems.invalid(path, port, "must be between 1 and 65535, inclusive");
    }
}

fn check_mounts(container: &Value, path: &str, volumes: &HashSet<&str>, problems: &mut Problems) {
    let mut places = HashSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{index}]");
        let name = text(mount, "name");
        if name.is_empty() {
            problems.required(&format!("{path}.name"), "");
        } else if !volumes.contains(name) {
            problems.not_found(&format!("{path}.name"), name);
        }
        let place = text(mount, "mountPath");
        if place.is_empty() {
            problems.required(&format!("{path}.mountPath"), "");
        } else if !places.insert(place) {
            problems.invalid(&format!("{path}.mountPath"), &mount["mountPath"], "must be unique");
        }
    }
}

fn check_resources(resources: &Value, path: &str, problems: &mut Problems) {
    let amount = |value: &Value| value.as_str().and_then(Quantity::parse).map(Quantity::nanos);
    for kind in ["limits", "requests"] {
        for (name, value) in resources[kind].as_object().into_iter().flatten() {
            let path = format!("{path}.{kind}[{name}]");
            if amount(value).is_some_and(|nanos| nanos < 0) {
                problems.invalid(&path, value, "must be greater than or equal to 0");
            }
        }
    }
    for (name, request) in resources["requests"].as_object().into_iter().flatten() {
        let limit = &resources["limits"][name];
        if let (Some(asked), Some(allowed)) = (amount(request), amount(limit))
            && asked > allowed
        {
            let limit = limit.as_str().unwrap_or_default();
            problems.invalid(
                &format!("{path}.requests"),
                request,
                &format!("must be less than or equal to {name} limit of {limit}"),
            );
        }
    }
}

/// A pod's spec is fixed except for images, deadline, tolerations and a few more.
pub(super) fn update(object: &Value, old: &Value, problems: &mut Problems) {
    let (spec, old_spec) = (&object["spec"], &old["spec"]);
    for field in ["containers", "initContainers"] {
        let path = format!("spec.{field}");
        if list(spec, field).len() != list(old_spec, field).len() {
            problems.forbidden(&path, "pod updates may not add or remove containers");
            return;
        }
    }
    if !check_deadline(spec, old_spec, problems) {
        return;
    }
    let same_but_seconds = |left: &Value, right: &Value| {
        ["key", "operator", "value", "effect"].iter().all(|key| left[*key] == right[*key])
    };
    let is_kept = |old: &Value| {
        list(spec, "tolerations").iter().any(|toleration| same_but_seconds(old, toleration))
    };
    if !list(old_spec, "tolerations").iter().all(is_kept) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        problems.forbidden("spec.tolerations", detail);
    }
    let gates = list(old_spec, "schedulingGates");
    for (index, gate) in list(spec, "schedulingGates").iter().enumerate() {
        if !gates.contains(gate) {
            let path = format!("spec.schedulingGates[{index}].name");
            let detail = "only deletion is allowed, but found new scheduling gate ";
            let name = text(gate, "name");
            problems.forbidden(&path, &format!("{detail}'{name}'"));
        }
    }
    let is_gated = !gates.is_empty();
    if fixed_part(spec, is_gated) == fixed_part(old_spec, is_gated) {
        return;
    }
    problems.forbidden(
        "spec",
        "pod updates may not change fields other than \
         `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
         `spec.tolerations` (only additions to existing \
         tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
         previously negative)",
    );
}

/// A deadline can be set and shortened; false when nothing else should be checked.
fn check_deadline(spec: &Value, old: &Value, problems: &mut Problems) -> bool {
    let path = "spec.activeDeadlineSeconds";
    let (new, old) = (&spec["activeDeadlineSeconds"], &old["activeDeadlineSeconds"]);
    match (new.as_i64(), old.as_i64()) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            problems.invalid(path, new, "must be between 0 and 2147483647, inclusive");
            false
        }
        (Some(seconds), Some(before)) if before < seconds => {
            problems.invalid(path, new, "must be less than or equal to previous value");
            false
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            problems.invalid_text(path, "null", detail);
            true
        }
        _ => true,
    }
}

fn fixed_part(spec: &Value, is_gated: bool) -> Value {
    let mut fixed = spec.clone();
    let Some(fields) = fixed.as_object_mut() else { return fixed };
    for field in [
        "activeDeadlineSeconds",
        "tolerations",
        "terminationGracePeriodSeconds",
        "schedulingGates",
        // Set by the binding and ephemeral-container endpoints, which share this check.
        "nodeName",
        "ephemeralContainers",
    ] {
        fields.shift_remove(field);
    }
    if is_gated {
        fields.shift_remove("nodeSelector");
        fields.shift_remove("affinity");
    }
    for list in ["containers", "initContainers"] {
        for container in fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container.as_object_mut().and_then(|container| container.shift_remove("image"));
        }
    }
    fixed
}
