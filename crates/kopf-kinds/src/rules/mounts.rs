//! Rules of a container's mounts and devices.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::Problems;
use super::containers::{descending, no_backsteps};
use super::volumes::Volumes;
use crate::fields::{is_empty, list, text};

const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];

/// Checks the mounts and devices of a container.
pub(super) fn check(container: &Value, path: &str, volumes: &Volumes<'_>, problems: &mut Problems) {
    mounts(container, &format!("{path}.volumeMounts"), volumes, problems);
    devices(container, &format!("{path}.volumeDevices"), volumes, problems);
}

/// Paths by the name of the volume: the last one of each volume counts.
fn by_name<'a>(container: &'a Value, field: &str, target: &str) -> HashMap<&'a str, &'a str> {
    list(container, field).iter().map(|it| (text(it, "name"), text(it, target))).collect()
}

fn mounts(container: &Value, path: &str, volumes: &Volumes<'_>, problems: &mut Problems) {
    let devices = by_name(container, "volumeDevices", "devicePath");
    let mut places = HashSet::new();
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at = format!("{path}[{index}]");
        let name = text(mount, "name");
        if name.is_empty() {
            problems.required(&format!("{at}.name"), "");
        }
        if !volumes.contains_key(name) {
            problems.not_found(&format!("{at}.name"), name);
        }
        let place = text(mount, "mountPath");
        let shown = Value::from(place);
        if place.is_empty() {
            problems.required(&format!("{at}.mountPath"), "");
        }
        if !places.insert(place) {
            problems.invalid(&format!("{at}.mountPath"), &shown, "must be unique");
        }
        if devices.contains_key(name) {
            let detail = "must not already exist in volumeDevices";
            problems.invalid(&format!("{at}.name"), &name.into(), detail);
        }
        if devices.values().any(|device| *device == place) {
            let detail = "must not already exist as a path in volumeDevices";
            problems.invalid(&format!("{at}.mountPath"), &shown, detail);
        }
        // Upstream leaves out the index in the rest.
        for field in ["subPath", "subPathExpr"] {
            if !is_empty(mount, field) {
                descending(&mount[field], &format!("{path}.{field}"), problems);
            }
        }
        if !is_empty(mount, "subPath") && !is_empty(mount, "subPathExpr") {
            let detail = "subPathExpr and subPath are mutually exclusive";
            problems.invalid(&format!("{at}.subPathExpr"), &mount["subPathExpr"], detail);
        }
        propagation(mount, container, &format!("{path}.mountPropagation"), problems);
        read_only(mount, &format!("{path}.recursiveReadOnly"), problems);
    }
}

fn propagation(mount: &Value, container: &Value, path: &str, problems: &mut Problems) {
    let mode = &mount["mountPropagation"];
    if mode.is_null() {
        return;
    }
    problems.one_of(path, mode, &PROPAGATIONS);
    if mode == "Bidirectional" && container["securityContext"]["privileged"] != true {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        problems.forbidden(path, detail);
    }
}

fn read_only(mount: &Value, path: &str, problems: &mut Problems) {
    match mount["recursiveReadOnly"].as_str() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if mount["readOnly"] != true {
                problems.forbidden(path, "may only be specified when readOnly is true");
            }
            let mode = &mount["mountPropagation"];
            if !mode.is_null() && mode != "None" {
                let detail = "may only be specified when mountPropagation is None or not specified";
                problems.forbidden(path, detail);
            }
        }
        Some(_) => {
            let supported = ["Disabled", "Enabled", "IfPossible"];
            problems.one_of(path, &mount["recursiveReadOnly"], &supported);
        }
    }
}

fn devices(container: &Value, path: &str, volumes: &Volumes<'_>, problems: &mut Problems) {
    let mounts = by_name(container, "volumeMounts", "mountPath");
    let (mut names, mut places) = (HashSet::new(), HashSet::new());
    for (index, device) in list(container, "volumeDevices").iter().enumerate() {
        let (name, place) = (text(device, "name"), text(device, "devicePath"));
        let wrong_name = |problems: &mut Problems, detail: &str| {
            problems.invalid(&format!("{path}[{index}].name"), &name.into(), detail);
        };
        let wrong_path = |problems: &mut Problems, detail: &str| {
            problems.invalid(&format!("{path}[{index}].devicePath"), &place.into(), detail);
        };
        if name.is_empty() {
            problems.required(&format!("{path}[{index}].name"), "");
        }
        if names.contains(name) {
            wrong_name(problems, "must be unique");
        }
        match volumes.get(name) {
            Some(true) => {}
            Some(false) => wrong_name(
                problems,
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block \
                 mode",
            ),
            None => problems.not_found(&format!("{path}[{index}].name"), name),
        }
        if place.is_empty() {
            problems.required(&format!("{path}[{index}].devicePath"), "");
        }
        if places.contains(place) {
            wrong_path(problems, "must be unique");
        }
        let mut steps = Problems::default();
        no_backsteps(&place.into(), path, &mut steps);
        if steps.found.is_empty() {
            places.insert(place);
        } else {
            wrong_path(problems, "can not contain backsteps ('..')");
        }
        if mounts.contains_key(name) {
            wrong_name(problems, "must not already exist in volumeMounts");
        }
        if mounts.values().any(|mount| *mount == place) {
            wrong_path(problems, "must not already exist as a path in volumeMounts");
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}
