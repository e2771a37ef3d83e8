//! Rules of the kinds of `storage.k8s.io`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Problems, go_text, labels, resources, storage};
use crate::fields::{is_empty, list, text};
use crate::names::{qualified_name_problems, subdomain_problems};

const PARAMETERS_MAX: usize = 512;
const PARAMETERS_SIZE_MAX: usize = 256 * 1024;
const NODE_ID_LENGTH_MAX: usize = 256;

pub(super) fn check(resource: &str, object: &Value, is_new: bool, problems: &mut Problems) {
    match resource {
        "storageclasses" => class(object, problems),
        "csidrivers" => driver(&object["spec"], problems),
        "csinodes" => node(&object["spec"], problems),
        "csistoragecapacities" => capacity(object, problems),
        "volumeattachments" => attachment(&object["spec"], is_new, problems),
        _ => {}
    }
}

/// The errors of an updated object.
pub(super) fn update(resource: &str, object: &Value, old: &Value, problems: &mut Problems) {
    match resource {
        "storageclasses" => {
            let fixed = ["parameters", "provisioner", "reclaimPolicy"];
            for field in fixed.iter().filter(|field| object[**field] != old[**field]) {
                problems.forbidden(field, &format!("updates to {field} are forbidden."));
            }
            let mode = |class: &Value| class["volumeBindingMode"].clone();
            problems.immutable("volumeBindingMode", &mode(object), &mode(old));
        }
        "csidrivers" => {
            let (spec, old) = (&object["spec"], &old["spec"]);
            // This is upstream's spelling of the field.
            let path = "spec.attachedRequired";
            problems.immutable(path, &spec["attachRequired"], &old["attachRequired"]);
            let modes = &spec["volumeLifecycleModes"];
            if *modes != old["volumeLifecycleModes"] {
                let shown: Vec<String> =
                    list(spec, "volumeLifecycleModes").iter().map(go_text::quoted).collect();
                let shown = format!("[]storage.VolumeLifecycleMode{{{}}}", shown.join(", "));
                problems.invalid_text("spec.volumeLifecycleModes", &shown, "field is immutable");
            }
        }
        "csistoragecapacities" => {
            if object["nodeTopology"] != old["nodeTopology"] {
                let shown = go_text::label_selector(&object["nodeTopology"]);
                problems.invalid_text("nodeTopology", &shown, "field is immutable");
            }
            let name = |capacity: &Value| capacity["storageClassName"].clone();
            problems.immutable("storageClassName", &name(object), &name(old));
        }
        _ => {}
    }
}

fn class(object: &Value, problems: &mut Problems) {
    provisioner(text(object, "provisioner"), problems);
    parameters(object, problems);
    if !is_empty(object, "reclaimPolicy") {
        problems.one_of("reclaimPolicy", &object["reclaimPolicy"], &["Delete", "Retain"]);
    }
    let modes = ["Immediate", "WaitForFirstConsumer"];
    problems.one_of("volumeBindingMode", &object["volumeBindingMode"], &modes);
    topologies(object, problems);
}

fn provisioner(name: &str, problems: &mut Problems) {
    let path = "provisioner";
    if name.is_empty() {
        problems.required(path, "");
        return;
    }
    let lower = name.to_lowercase();
    for problem in qualified_name_problems(&lower) {
        problems.invalid(path, &lower.as_str().into(), &problem);
    }
}

fn parameters(object: &Value, problems: &mut Problems) {
    let entries: Vec<(&String, &Value)> =
        object["parameters"].as_object().into_iter().flatten().collect();
    if entries.len() > PARAMETERS_MAX {
        problems.too_long("parameters", PARAMETERS_MAX);
        return;
    }
    if entries.iter().any(|(key, _)| key.is_empty()) {
        problems.invalid("parameters", &"".into(), "field can not be empty.");
    }
    let size: usize = entries
        .iter()
        .map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len())
        .sum();
    if size > PARAMETERS_SIZE_MAX {
        problems.too_long("parameters", PARAMETERS_SIZE_MAX);
    }
}

fn topologies(object: &Value, problems: &mut Problems) {
    let mut terms: Vec<BTreeMap<&str, BTreeSet<&str>>> = Vec::new();
    let count = list(object, "allowedTopologies").len();
    for (index, term) in list(object, "allowedTopologies").iter().enumerate() {
        let path = format!("allowedTopologies[{index}].matchLabelExpressions");
        let mut keys = BTreeMap::new();
        for (place, requirement) in list(term, "matchLabelExpressions").iter().enumerate() {
            let path = format!("{path}[{place}]");
            let values = requirement_values(requirement, &path, problems);
            let key = text(requirement, "key");
            for problem in qualified_name_problems(key) {
                problems.invalid(&format!("{path}.key"), &key.into(), &problem);
            }
            if keys.insert(key, values).is_some() {
                problems.duplicate(&format!("{path}.key"), &key.into());
            }
        }
        // Upstream compares with as many empty terms, too.
        let empty = if keys.is_empty() { count } else { 0 };
        for _ in 0..empty + terms.iter().filter(|term| **term == keys).count() {
            problems.duplicate(&path, &"".into());
        }
        terms.push(keys);
    }
}

fn requirement_values<'a>(
    requirement: &'a Value,
    path: &str,
    problems: &mut Problems,
) -> BTreeSet<&'a str> {
    if is_empty(requirement, "values") {
        problems.required(&format!("{path}.values"), "");
    }
    let mut seen = BTreeSet::new();
    for (index, value) in list(requirement, "values").iter().enumerate() {
        if !seen.insert(value.as_str().unwrap_or_default()) {
            problems.duplicate(&format!("{path}.values[{index}]"), value);
        }
    }
    seen
}

fn driver(spec: &Value, problems: &mut Problems) {
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    problems.one_of_if_set(spec, "spec", "fsGroupPolicy", &policies);
    let mut audiences = BTreeSet::new();
    for (index, request) in list(spec, "tokenRequests").iter().enumerate() {
        let path = format!("spec.tokenRequests[{index}]");
        let audience = text(request, "audience");
        if !audiences.insert(audience) {
            problems.duplicate(&format!("{path}.audience"), &audience.into());
            continue;
        }
        let seconds = &request["expirationSeconds"];
        let path = format!("{path}.expirationSeconds");
        if seconds.as_i64().is_some_and(|seconds| seconds < 600) {
            let detail = "may not specify a duration less than 10 minutes";
            problems.invalid(&path, seconds, detail);
        }
        if seconds.as_i64().is_some_and(|seconds| seconds > 1 << 32) {
            let detail = "may not specify a duration larger than 2^32 seconds";
            problems.invalid(&path, seconds, detail);
        }
    }
    for mode in list(spec, "volumeLifecycleModes") {
        problems.one_of("spec.volumeLifecycleModes", mode, &["Persistent", "Ephemeral"]);
    }
}

fn node(spec: &Value, problems: &mut Problems) {
    let mut names = BTreeSet::new();
    for (index, driver) in list(spec, "drivers").iter().enumerate() {
        let path = format!("spec.drivers[{index}]");
        storage::driver_name(text(driver, "name"), &format!("{path}.name"), problems);
        if is_empty(driver, "nodeID") {
            problems.required(&format!("{path}.nodeID"), "");
        }
        if text(driver, "nodeID").len() > NODE_ID_LENGTH_MAX {
            let detail = format!("must be {NODE_ID_LENGTH_MAX} characters or less");
            problems.invalid(&format!("{path}.nodeID"), &driver["nodeID"], &detail);
        }
        let count = &driver["allocatable"]["count"];
        problems.not_negative(&format!("{path}.allocatable.count"), count);
        if !names.insert(text(driver, "name")) {
            problems.duplicate(&format!("{path}.name"), &driver["name"]);
        }
        let mut keys = BTreeSet::new();
        for key in list(driver, "topologyKeys") {
            let name = key.as_str().unwrap_or_default();
            if name.is_empty() {
                problems.required(&path, "");
            }
            if !keys.insert(name) {
                problems.duplicate(&path, key);
            }
            for problem in qualified_name_problems(name) {
                problems.invalid(&path, key, &problem);
            }
        }
    }
}

fn capacity(object: &Value, problems: &mut Problems) {
    if object["nodeTopology"].is_object() {
        labels::check(&object["nodeTopology"], "nodeTopology", problems);
    }
    let name = text(object, "storageClassName");
    for problem in subdomain_problems(name) {
        problems.invalid("storageClassName", &name.into(), &problem);
    }
    if resources::nanos(&object["capacity"]).is_some_and(|amount| amount < 0) {
        let detail = "must be greater than or equal to 0";
        problems.invalid("capacity", &object["capacity"], detail);
    }
}

fn attachment(spec: &Value, is_new: bool, problems: &mut Problems) {
    if is_empty(spec, "attacher") {
        problems.required("spec.attacher", "");
    }
    let source = &spec["source"];
    let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (source["inlineVolumeSpec"].is_object(), source["persistentVolumeName"].as_str()) {
        (false, None) => problems.required("spec.source", detail),
        (true, Some(_)) => problems.forbidden("spec.source", detail),
        (false, Some("")) => {
            let detail = "must specify non empty persistentVolumeName";
            problems.required("spec.source.persistentVolumeName", detail);
        }
        _ => {}
    }
    let node = text(spec, "nodeName");
    for problem in subdomain_problems(node) {
        problems.invalid("spec.nodeName", &node.into(), &problem);
    }
    if is_new {
        storage::driver_name(text(spec, "attacher"), "spec.attacher", problems);
        if let Some(name) = source["persistentVolumeName"].as_str() {
            for problem in subdomain_problems(name) {
                problems.invalid("spec.source.persistentVolumeName", &name.into(), &problem);
            }
        }
    }
}
