//! Rules of pod specs in all kinds.

use std::collections::HashSet;

use serde_json::Value;

use super::network::{ADDRESS_DETAIL, is_address};
use super::volumes::Volumes;
use super::{Problems, containers, go_text, pod_annotations, pod_security, resources, scheduling};
use crate::fields::{is_empty, list, text};
use crate::go_structs;
use crate::names::label_problems;
use crate::pods::quality_of_service;

const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCHES_LENGTH_MAX: usize = 2048;

/// The errors of a pod spec at `path`, in any kind.
pub(super) fn check(spec: &Value, path: &str, problems: &mut Problems) {
    let volumes = super::volumes::check(spec, path, problems);
    let regular = list(spec, "containers");
    let at = format!("{path}.containers");
    if regular.is_empty() {
        problems.required(&at, "");
    }
    let mut names = HashSet::new();
    for (index, container) in regular.iter().enumerate() {
        let path = format!("{at}[{index}]");
        containers::common(container, &path, spec, &volumes, problems);
        if !names.insert(text(container, "name")) {
            problems.duplicate(&format!("{path}.name"), &container["name"]);
        }
        containers::life(container, &path, spec, problems);
        if !container["restartPolicy"].is_null() {
            let detail = "may not be set for non-init containers";
            problems.forbidden(&format!("{path}.restartPolicy"), detail);
        }
    }
    containers::host_ports(regular, &at, problems);
    check_init(spec, path, &volumes, &mut names, problems);
    check_ephemeral(spec, path, &volumes, problems);
    check_host_network(spec, &at, problems);
    let restart_policies = ["Always", "OnFailure", "Never"];
    problems.one_of(&format!("{path}.restartPolicy"), &spec["restartPolicy"], &restart_policies);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    problems.one_of(&format!("{path}.dnsPolicy"), &spec["dnsPolicy"], &policies);
    let selector = format!("{path}.nodeSelector");
    crate::meta::validate_labels(&spec["nodeSelector"], &selector, &mut problems.found);
    pod_security::of_pod(spec, path, problems);
    scheduling::affinity(&spec["affinity"], &format!("{path}.affinity"), problems);
    check_dns(spec, path, problems);
    scheduling::gates(spec, path, problems);
    scheduling::spreading(spec, path, problems);
    pod_security::host_process(spec, path, problems);
    pod_security::host_users(spec, path, problems);
    scheduling::names(spec, path, problems);
    scheduling::tolerations(spec, path, problems);
    scheduling::host_aliases(spec, path, problems);
    scheduling::classes(spec, path, problems);
    pod_security::operating_system(spec, path, problems);
}

/// Checks that apply only to pods, not to templates.
pub(super) fn check_pod(object: &Value, is_new: bool, problems: &mut Problems) {
    let spec = &object["spec"];
    pod_annotations::check(&object["metadata"], spec, "metadata.annotations", problems);
    for (container, path) in pod_security::containers(spec, "spec") {
        let image = text(container, "image");
        if image.trim() != image {
            let detail = "must not have leading or trailing whitespace";
            problems.invalid(&format!("{path}.image"), &container["image"], detail);
        }
    }
    if is_new && !is_empty(spec, "ephemeralContainers") {
        problems.forbidden("spec.ephemeralContainers", "cannot be set on create");
    }
    if is_new && !is_empty(spec, "nodeName") && !is_empty(spec, "schedulingGates") {
        let detail = "cannot be set until all schedulingGates have been cleared";
        problems.forbidden("spec.nodeName", detail);
    }
}

/// Checks the containers that were added to a running pod.
fn check_ephemeral(spec: &Value, path: &str, volumes: &Volumes<'_>, problems: &mut Problems) {
    const DETAIL: &str = "cannot be set for an Ephemeral Container";
    const REFUSED: [&str; 7] = [
        "ports",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
        "resources",
        "resizePolicy",
    ];
    let others: HashSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|field| list(spec, field))
        .map(|container| text(container, "name"))
        .collect();
    let mut names = others.clone();
    for (index, container) in list(spec, "ephemeralContainers").iter().enumerate() {
        let path = format!("{path}.ephemeralContainers[{index}]");
        containers::common(container, &path, spec, volumes, problems);
        let name = text(container, "name");
        if !names.insert(name) {
            problems.duplicate(&format!("{path}.name"), &name.into());
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            problems.not_found(&format!("{path}.targetContainerName"), target);
        }
        for field in REFUSED.iter().filter(|field| !is_empty(container, field)) {
            problems.forbidden(&format!("{path}.{field}"), DETAIL);
        }
        for (place, mount) in list(container, "volumeMounts").iter().enumerate() {
            for field in ["subPath", "subPathExpr"] {
                if !is_empty(mount, field) {
                    problems.forbidden(&format!("{path}.volumeMounts[{place}].{field}"), DETAIL);
                }
            }
        }
    }
}

/// Checks what `/ephemeralcontainers` may change: it only adds containers.
pub(super) fn ephemeral(object: &Value, old: &Value, problems: &mut Problems) {
    const PATH: &str = "spec.ephemeralContainers";
    check_pod(object, false, problems);
    check(&object["spec"], "spec", problems);
    pod_annotations::update(object, old, problems);
    let new = list(&object["spec"], "ephemeralContainers");
    for old in list(&old["spec"], "ephemeralContainers") {
        let name = text(old, "name");
        match new.iter().find(|container| text(container, "name") == name) {
            None => {
                let detail = format!("existing ephemeral containers {name:?} may not be removed\n");
                problems.forbidden(PATH, &detail);
            }
            Some(container) if container != old => {
                let detail = format!("existing ephemeral containers {name:?} may not be changed\n");
                problems.forbidden(PATH, &detail);
            }
            Some(_) => {}
        }
    }
}

fn check_init<'spec>(
    spec: &'spec Value,
    path: &str,
    volumes: &Volumes<'_>,
    names: &mut HashSet<&'spec str>,
    problems: &mut Problems,
) {
    for (index, container) in list(spec, "initContainers").iter().enumerate() {
        let path = format!("{path}.initContainers[{index}]");
        containers::common(container, &path, spec, volumes, problems);
        problems.one_of_if_set(container, &path, "restartPolicy", &["Always"]);
        let name = text(container, "name");
        if names.contains(name) {
            problems.duplicate(&format!("{path}.name"), &container["name"]);
        } else if !name.is_empty() {
            names.insert(name);
        }
        if container["restartPolicy"] == "Always" {
            containers::life(container, &path, spec, problems);
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

fn check_dns(spec: &Value, path: &str, problems: &mut Problems) {
    let config = &spec["dnsConfig"];
    let path = format!("{path}.dnsConfig");
    let (servers, searches) = (list(config, "nameservers"), list(config, "searches"));
    if spec["dnsPolicy"] == "None" && !config.is_object() {
        problems.required(&path, "must provide `dnsConfig` when `dnsPolicy` is None");
        return;
    }
    if spec["dnsPolicy"] == "None" && servers.is_empty() {
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        problems.required(&format!("{path}.nameservers"), detail);
        return;
    }
    if servers.len() > NAMESERVERS_MAX {
        let shown = go_text::string_list(&config["nameservers"]);
        let detail = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        problems.invalid_text(&format!("{path}.nameservers"), &shown, &detail);
    }
    for (index, server) in servers.iter().enumerate() {
        if !is_address(server.as_str().unwrap_or_default()) {
            problems.invalid(&format!("{path}.nameservers[{index}]"), server, ADDRESS_DETAIL);
        }
    }
    check_searches(searches, &config["searches"], &format!("{path}.searches"), problems);
    for (index, option) in list(config, "options").iter().enumerate() {
        if is_empty(option, "name") {
            problems.required(&format!("{path}.options[{index}]"), "must not be empty");
        }
    }
}

fn check_searches(searches: &[Value], all: &Value, path: &str, problems: &mut Problems) {
    if searches.len() > SEARCHES_MAX {
        let detail = format!("must not have more than {SEARCHES_MAX} search paths");
        problems.invalid_text(path, &go_text::string_list(all), &detail);
    }
    let text = |search: &Value| search.as_str().unwrap_or_default().to_owned();
    let joined: Vec<String> = searches.iter().map(text).collect();
    if joined.join(" ").len() > SEARCHES_LENGTH_MAX {
        let detail = format!(
            "must not have more than {SEARCHES_LENGTH_MAX} characters (including spaces) in the \
             search list"
        );
        problems.invalid_text(path, &go_text::string_list(all), &detail);
    }
    for (index, search) in joined.iter().enumerate().filter(|(_, search)| *search != ".") {
        let name = search.strip_suffix('.').unwrap_or(search);
        for problem in crate::names::underscored_subdomain_problems(name) {
            problems.invalid(&format!("{path}[{index}]"), &name.into(), &problem);
        }
    }
}

/// Checks a DNS label.
pub(super) fn check_label(name: &str, path: &str, problems: &mut Problems) {
    for problem in label_problems(name) {
        problems.invalid(path, &name.into(), &problem);
    }
}

pub(super) fn check_port_number(port: &Value, path: &str, problems: &mut Problems) {
    if !port.as_i64().is_some_and(|number| (1..=65535).contains(&number)) {
        problems.invalid(path, port, "must be between 1 and 65535, inclusive");
    }
}

/// A pod's spec is immutable except for images, deadline, tolerations and a few other fields.
pub(super) fn update(object: &Value, old: &Value, problems: &mut Problems) {
    let (spec, old_spec) = (&object["spec"], &old["spec"]);
    pod_annotations::update(object, old, problems);
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
    let settled = settled(spec, old_spec, is_gated);
    if settled == *old_spec {
        return;
    }
    let changes = go_structs::difference("core.PodSpec", old_spec, &settled);
    let detail = format!(
        "pod updates may not change fields other than \
         `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
         `spec.tolerations` (only additions to existing \
         tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
         previously negative)\n{changes}"
    );
    problems.forbidden("spec", &detail);
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

/// The new spec with the old values of what may change.
fn settled(spec: &Value, old: &Value, is_gated: bool) -> Value {
    let mut settled = spec.clone();
    let Some(fields) = settled.as_object_mut() else { return settled };
    let mut keep = |field: &str| match old.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.shift_remove(field),
    };
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        keep(field);
    }
    if is_gated {
        keep("nodeSelector");
        keep("affinity");
    }
    let grace = "terminationGracePeriodSeconds";
    if spec[grace] == 1 && old[grace].as_i64().is_some_and(|seconds| seconds < 0) {
        keep(grace);
    }
    for field in ["containers", "initContainers"] {
        let containers = fields.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, old) in containers.zip(list(old, field)) {
            let Some(container) = container.as_object_mut() else { continue };
            match old.get("image") {
                Some(image) => container.insert("image".to_owned(), image.clone()),
                None => container.shift_remove("image"),
            };
        }
    }
    settled
}
