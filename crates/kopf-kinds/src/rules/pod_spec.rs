//! Rules of pod specs in all kinds.

use std::collections::HashSet;

use serde_json::Value;

use super::{Problems, containers, resources, scheduling, volumes};
use crate::fields::{list, text};
use crate::pods::quality_of_service;

pub(super) const LABEL_DETAIL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
    characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
    '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// The errors of a pod spec at `path`, in any kind.
pub(super) fn check(spec: &Value, path: &str, problems: &mut Problems) {
    let volumes = volumes::check(spec, path, problems);
    let regular = list(spec, "containers");
    let at = format!("{path}.containers");
    if regular.is_empty() {
        problems.required(&at, "");
    }
    let mut names = HashSet::new();
    for (index, container) in regular.iter().enumerate() {
        let path = format!("{at}[{index}]");
        containers::common(container, &path, &volumes, problems);
        if !names.insert(text(container, "name")) {
            problems.duplicate(&format!("{path}.name"), &container["name"]);
        }
        containers::life(container, &path, problems);
        if !container["restartPolicy"].is_null() {
            let detail = "may not be set for non-init containers";
            problems.forbidden(&format!("{path}.restartPolicy"), detail);
        }
    }
    containers::host_ports(regular, &at, problems);
    check_init(spec, path, &volumes, &mut names, problems);
    check_host_network(spec, &at, problems);
    check_host_users(spec, path, problems);
    let restart_policies = ["Always", "OnFailure", "Never"];
    problems.one_of(&format!("{path}.restartPolicy"), &spec["restartPolicy"], &restart_policies);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    problems.one_of(&format!("{path}.dnsPolicy"), &spec["dnsPolicy"], &policies);
    let selector = format!("{path}.nodeSelector");
    crate::meta::validate_labels(&spec["nodeSelector"], &selector, &mut problems.found);
    let context = &spec["securityContext"];
    scheduling::security(context, &format!("{path}.securityContext"), problems);
    scheduling::affinity(&spec["affinity"], &format!("{path}.affinity"), problems);
    check_dns(spec, path, problems);
    scheduling::gates(spec, path, problems);
    scheduling::spreading(spec, path, problems);
    scheduling::names(spec, path, problems);
    scheduling::tolerations(spec, path, problems);
    scheduling::host_aliases(spec, path, problems);
}

/// Checks that apply only to pods, not to templates.
pub(super) fn check_pod(spec: &Value, problems: &mut Problems) {
    for field in ["containers", "initContainers"] {
        for (index, container) in list(spec, field).iter().enumerate() {
            let image = text(container, "image");
            if image.trim() != image {
                let detail = "must not have leading or trailing whitespace";
                let path = format!("spec.{field}[{index}].image");
                problems.invalid(&path, &container["image"], detail);
            }
        }
    }
}

fn check_init<'spec>(
    spec: &'spec Value,
    path: &str,
    volumes: &HashSet<&str>,
    names: &mut HashSet<&'spec str>,
    problems: &mut Problems,
) {
    for (index, container) in list(spec, "initContainers").iter().enumerate() {
        let path = format!("{path}.initContainers[{index}]");
        containers::common(container, &path, volumes, problems);
        problems.one_of_if_set(container, &path, "restartPolicy", &["Always"]);
        let name = text(container, "name");
        if names.contains(name) {
            problems.duplicate(&format!("{path}.name"), &container["name"]);
        } else if !name.is_empty() {
            names.insert(name);
        }
        if container["restartPolicy"] == "Always" {
            containers::life(container, &path, problems);
        } else {
            containers::no_life(container, &path, problems);
        }
    }
}

fn check_host_network(spec: &Value, path: &str, problems: &mut Problems) {
    if spec["hostNetwork"] != true {
        return;
    }
    for (index, container) in list(spec, "containers").iter().enumerate() {
        for (place, port) in list(container, "ports").iter().enumerate() {
            let host = port["hostPort"].as_i64().unwrap_or_default();
            if host != 0 && Some(host) != port["containerPort"].as_i64() {
                let detail = "must match `containerPort` when `hostNetwork` is true";
                let path = format!("{path}[{index}].ports[{place}].hostPort");
                problems.invalid(&path, &port["hostPort"], detail);
            }
        }
    }
}

/// Checks fields that need the user namespace or the network of the node.
fn check_host_users(spec: &Value, path: &str, problems: &mut Problems) {
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    for list_name in lists {
        for (index, container) in list(spec, list_name).iter().enumerate() {
            let mount = &container["securityContext"]["procMount"];
            if mount == "Unmasked" && spec["hostUsers"] != false {
                let path = format!("{path}.{list_name}[{index}].securityContext.procMount");
                let detail = "`hostUsers` must be false to use `Unmasked`";
                problems.invalid(&path, mount, detail);
            }
        }
    }
    let runs_on_host =
        |owner: &Value| owner["securityContext"]["windowsOptions"]["hostProcess"] == true;
    let any = lists.iter().flat_map(|name| list(spec, name)).any(runs_on_host);
    if (any || runs_on_host(spec)) && spec["hostNetwork"] != true {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        problems.invalid(&format!("{path}.hostNetwork"), &false.into(), detail);
    }
}

fn check_dns(spec: &Value, path: &str, problems: &mut Problems) {
    let config = &spec["dnsConfig"];
    if spec["dnsPolicy"] != "None" {
        return;
    }
    if !config.is_object() {
        let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
        problems.required(&format!("{path}.dnsConfig"), detail);
    } else if list(config, "nameservers").is_empty() {
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        problems.required(&format!("{path}.dnsConfig.nameservers"), detail);
    }
}

pub(super) fn is_label(name: &str) -> bool {
    let is_word = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    name.len() <= 63
        && name.starts_with(is_word)
        && name.ends_with(is_word)
        && name.chars().all(|character| is_word(character) || character == '-')
}

pub(super) fn check_port_number(port: &Value, path: &str, problems: &mut Problems) {
    if !port.as_i64().is_some_and(|number| (1..=65535).contains(&number)) {
        problems.invalid(path, port, "must be between 1 and 65535, inclusive");
    }
}

/// A pod's spec is immutable except for images, deadline, tolerations and a few other fields.
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
    let mut former = fixed_part(old_spec, is_gated);
    let grace = "terminationGracePeriodSeconds";
    if spec[grace] == 1 && former[grace].as_i64().is_some_and(|seconds| seconds < 0) {
        former[grace] = 1.into();
    }
    if fixed_part(spec, is_gated) == former {
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

/// Rejects changes that `/resize` may not make.
pub(super) fn resize(object: &Value, old: &Value, problems: &mut Problems) {
    let (spec, old_spec) = (&object["spec"], &old["spec"]);
    check(spec, "spec", problems);
    if old["metadata"]["annotations"].get("kubernetes.io/config.mirror").is_some() {
        problems.found.clear();
        problems.forbidden("", "static pods cannot be resized");
        return;
    }
    if quality_of_service(spec) != quality_of_service(old_spec) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        problems.invalid("spec", &object["status"]["qosClass"], detail);
    }
    let mut statuses = list(&old["status"], "containerStatuses").iter();
    let running = statuses.find(|status| status["state"]["running"].is_object());
    if running.is_some_and(|status| status["resources"].is_null()) {
        problems.forbidden("spec", "Pod running on node without support for resize");
    }
    if !has_same_containers(spec, old_spec, problems) {
        return;
    }
    for (index, old) in list(old_spec, "containers").iter().enumerate() {
        let new = &list(spec, "containers")[index];
        resize_container(new, old, &format!("spec.containers[{index}].resources"), problems);
    }
}

fn has_same_containers(spec: &Value, old: &Value, problems: &mut Problems) -> bool {
    let before = problems.found.len();
    for field in ["containers", "initContainers"] {
        let (new, old) = (list(spec, field), list(old, field));
        let path = format!("spec.{field}");
        if new.len() != old.len() {
            problems.forbidden(&path, &format!("{field} may not be added or removed on resize"));
            continue;
        }
        for index in (0..old.len()).filter(|index| new[*index]["name"] != old[*index]["name"]) {
            let detail = format!("{field} may not be renamed or reordered on resize");
            problems.forbidden(&format!("{path}[{index}].name"), &detail);
        }
    }
    problems.found.len() == before
}

fn resize_container(new: &Value, old: &Value, path: &str, problems: &mut Problems) {
    for kind in ["requests", "limits"] {
        let had = old["resources"][kind].as_object().into_iter().flatten();
        if had.into_iter().any(|(name, _)| new["resources"][kind].get(name).is_none()) {
            let detail = format!("resource {kind} cannot be removed");
            problems.forbidden(&format!("{path}.{kind}"), &detail);
        }
    }
    let policies = list(new, "resizePolicy");
    let of_memory = policies.iter().find(|policy| policy["resourceName"] == "memory");
    if of_memory.is_some_and(|policy| policy["restartPolicy"] == "RestartContainer") {
        return;
    }
    let limit = |container: &Value| resources::nanos(&container["resources"]["limits"]["memory"]);
    let path = format!("{path}.limits[memory]");
    match (limit(new), limit(old)) {
        (Some(new), Some(old)) if new < old => {
            let detail =
                "memory limits cannot be decreased unless resizePolicy is RestartContainer";
            problems.forbidden(&path, detail);
        }
        (Some(_), None) => {
            let detail = "memory limits cannot be added unless resizePolicy is RestartContainer";
            problems.forbidden(&path, detail);
        }
        _ => {}
    }
}

/// A deadline can be set and shortened; returns false if nothing else should be checked.
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
        "schedulingGates",
        // Set by its own endpoint, which uses the same check.
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
