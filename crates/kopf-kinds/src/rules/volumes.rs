//! Rules of the volumes of a pod.

use std::collections::HashMap;

use serde_json::Value;

use super::pod_spec::check_label;
use super::{Problems, volume_sources};
use crate::fields::{list, text};

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

/// The volumes that can be mounted by name, and whether each is a claim.
pub(super) type Volumes<'spec> = HashMap<&'spec str, bool>;

/// Checks all volumes; returns those that can be mounted.
pub(super) fn check<'spec>(
    spec: &'spec Value,
    path: &str,
    problems: &mut Problems,
) -> Volumes<'spec> {
    let mut known = Volumes::new();
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let path = format!("{path}.volumes[{index}]");
        let before = problems.found.len();
        source(volume, &path, problems);
        let name = text(volume, "name");
        let at = format!("{path}.name");
        if name.is_empty() {
            problems.required(&at, "");
        } else {
            check_label(name, &at, problems);
        }
        if known.contains_key(name) {
            problems.duplicate(&at, &volume["name"]);
        }
        if problems.found.len() == before {
            let is_claim = ["persistentVolumeClaim", "ephemeral"];
            known.insert(name, is_claim.iter().any(|kind| volume[*kind].is_object()));
        }
    }
    known
}

fn source(volume: &Value, path: &str, problems: &mut Problems) {
    let mut is_chosen = false;
    for kind in SOURCES {
        let source = &volume[kind];
        if !source.is_object() {
            continue;
        }
        if is_chosen {
            // Two of upstream's paths are misspelt.
            let shown = match kind {
                "cephfs" => "cephFS",
                "downwardAPI" => "downwarAPI",
                other => other,
            };
            let detail = "may not specify more than 1 volume type";
            problems.forbidden(&format!("{path}.{shown}"), detail);
            continue;
        }
        is_chosen = true;
        // Upstream has another name for this one in its paths.
        let shown = if kind == "gcePersistentDisk" { "persistentDisk" } else { kind };
        volume_sources::check(kind, source, &format!("{path}.{shown}"), problems);
    }
    if !is_chosen {
        problems.required(path, "must specify a volume type");
    }
}
