//! Rules of the volumes of a pod.

use std::collections::HashSet;

use serde_json::Value;

use super::Problems;
use super::containers::{descending, no_backsteps};
use super::pod_spec::{LABEL_DETAIL, is_label};
use crate::fields::{is_empty, list, text};

/// The sources in the order of upstream's checks.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];
const MODE_DETAIL: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const MODE_MAX: i64 = 0o777;
const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// Checks all volumes; returns the names of those that can be mounted.
pub(super) fn check<'spec>(
    spec: &'spec Value,
    path: &str,
    problems: &mut Problems,
) -> HashSet<&'spec str> {
    let mut names = HashSet::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = format!("{path}.volumes[{index}]");
        let before = problems.found.len();
        source(volume, &path, problems);
        let name = text(volume, "name");
        let at = format!("{path}.name");
        if name.is_empty() {
            problems.required(&at, "");
        } else if !is_label(name) {
            problems.invalid(&at, &volume["name"], LABEL_DETAIL);
        }
        if names.contains(name) {
            problems.duplicate(&at, &volume["name"]);
        }
        if problems.found.len() == before {
            names.insert(name);
        }
    }
    names
}

fn source(volume: &Value, path: &str, problems: &mut Problems) {
    let mut is_chosen = false;
    for kind in SOURCES {
        let source = &volume[kind];
        if !source.is_object() {
            continue;
        }
        let at = format!("{path}.{kind}");
        if is_chosen {
            problems.forbidden(&at, "may not specify more than 1 volume type");
            continue;
        }
        is_chosen = true;
        match kind {
            "hostPath" => host_path(source, &at, problems),
            "secret" => files(source, "secretName", &at, problems),
            "configMap" => files(source, "name", &at, problems),
            "persistentVolumeClaim" if is_empty(source, "claimName") => {
                problems.required(&format!("{at}.claimName"), "");
            }
            "nfs" => nfs(source, &at, problems),
            "csi" if is_empty(source, "driver") => {
                problems.required(&format!("{at}.driver"), "");
            }
            _ => {}
        }
    }
    if !is_chosen {
        problems.required(path, "must specify a volume type");
    }
}

/// Checks a path on the node.
pub(super) fn host_path(source: &Value, path: &str, problems: &mut Problems) {
    if is_empty(source, "path") {
        problems.required(&format!("{path}.path"), "");
        return;
    }
    no_backsteps(&source["path"], &format!("{path}.path"), problems);
    problems.one_of_if_set(source, path, "type", &HOST_PATH_TYPES);
}

/// Checks an NFS share.
pub(super) fn nfs(source: &Value, path: &str, problems: &mut Problems) {
    for field in ["server", "path"] {
        if is_empty(source, field) {
            problems.required(&format!("{path}.{field}"), "");
        }
    }
    if !text(source, "path").starts_with('/') {
        let shown = Value::from(text(source, "path"));
        problems.invalid(&format!("{path}.path"), &shown, "must be an absolute path");
    }
}

fn files(source: &Value, name: &str, path: &str, problems: &mut Problems) {
    if is_empty(source, name) {
        problems.required(&format!("{path}.{name}"), "");
    }
    mode(&source["defaultMode"], &format!("{path}.defaultMode"), problems);
    for (index, item) in list(source, "items").iter().enumerate() {
        let at = format!("{path}.items[{index}]");
        for field in ["key", "path"] {
            if is_empty(item, field) {
                problems.required(&format!("{at}.{field}"), "");
            }
        }
        descending(&item["path"], &format!("{at}.path"), problems);
        mode(&item["mode"], &format!("{at}.mode"), problems);
    }
}

fn mode(mode: &Value, path: &str, problems: &mut Problems) {
    if mode.as_i64().is_some_and(|mode| !(0..=MODE_MAX).contains(&mode)) {
        problems.invalid(path, mode, MODE_DETAIL);
    }
}
