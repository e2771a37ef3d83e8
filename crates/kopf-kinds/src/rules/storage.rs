//! Rules of volumes and claims.

use serde_json::Value;

use super::containers::no_backsteps;
use super::{Problems, labels, limits, resources, scheduling, volume_sources};
use crate::fields::{is_empty, list, text, text_at};
use crate::go_structs;
use crate::names::{label_problems, subdomain_problems};
use crate::{FieldError, FieldErrorReason};

const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
/// The sources of volumes, in the order of the checks.
const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];
const CLASS_ANNOTATION: &str = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";

pub(super) fn check(resource: &str, object: &Value, problems: &mut Problems) {
    match resource {
        "persistentvolumeclaims" => claim_spec(&object["spec"], "spec", problems),
        "persistentvolumes" => volume(&object["spec"], problems),
        _ => {}
    }
}

fn access_modes(spec: &Value, path: &str, problems: &mut Problems) {
    let at = format!("{path}.accessModes");
    for mode in list(spec, "accessModes") {
        problems.one_of(&at, mode, &ACCESS_MODES);
    }
    let modes = list(spec, "accessModes");
    let is_other = |mode: &&Value| {
        mode.as_str().is_some_and(|mode| mode != "ReadWriteOncePod" && ACCESS_MODES.contains(&mode))
    };
    if modes.iter().any(|mode| mode == "ReadWriteOncePod") && modes.iter().any(|m| is_other(&m)) {
        problems.forbidden(&at, "may not use ReadWriteOncePod with other access modes");
    }
}

fn class_name(spec: &Value, path: &str, problems: &mut Problems) {
    let name = text(spec, "storageClassName");
    if !name.is_empty() {
        for problem in subdomain_problems(name) {
            problems.invalid(&format!("{path}.storageClassName"), &name.into(), &problem);
        }
    }
}

/// Checks the spec of a claim or of a claim's template.
pub(super) fn claim_spec(spec: &Value, path: &str, problems: &mut Problems) {
    if is_empty(spec, "accessModes") {
        let detail = "at least 1 access mode is required";
        problems.required(&format!("{path}.accessModes"), detail);
    }
    if spec["selector"].is_object() {
        labels::check(&spec["selector"], &format!("{path}.selector"), problems);
    }
    access_modes(spec, path, problems);
    let at = format!("{path}.resources[storage]");
    match spec["resources"]["requests"].get("storage") {
        None => problems.required(&at, ""),
        Some(size) if resources::nanos(size).is_some_and(|nanos| nanos <= 0) => {
            problems.invalid(&at, size, "must be greater than zero");
        }
        Some(_) => {}
    }
    class_name(spec, path, problems);
    problems.one_of_if_set(spec, path, "volumeMode", &["Block", "Filesystem"]);
    data_sources(spec, path, problems);
}

/// Checks the data sources of a claim.
fn data_sources(spec: &Value, owner: &str, problems: &mut Problems) {
    for field in ["dataSource", "dataSourceRef"] {
        let source = &spec[field];
        if !source.is_object() {
            continue;
        }
        let path = format!("{owner}.{field}");
        for required in ["name", "kind"] {
            if is_empty(source, required) {
                problems.required(&format!("{path}.{required}"), "");
            }
        }
        let group = text(source, "apiGroup");
        if group.is_empty() && source["kind"] != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            problems.invalid(&path, &text(source, "kind").into(), detail);
        }
        if !group.is_empty() {
            for problem in subdomain_problems(group) {
                problems.invalid(&format!("{path}.apiGroup"), &source["apiGroup"], &problem);
            }
        }
        let namespace = text(source, "namespace");
        if !namespace.is_empty() {
            for problem in label_problems(namespace) {
                problems.invalid(&format!("{path}.namespace"), &namespace.into(), &problem);
            }
        }
    }
    let (old_way, new_way) = (&spec["dataSource"], &spec["dataSourceRef"]);
    if !old_way.is_object() || !new_way.is_object() {
        return;
    }
    let is_other =
        ["apiGroup", "kind", "name"].iter().any(|field| old_way[*field] != new_way[*field]);
    if !is_empty(new_way, "namespace") {
        let detail = "may not be specified when dataSourceRef.namespace is specified";
        problems.invalid_text(owner, DATA_SOURCE, detail);
    } else if is_other {
        problems.invalid_text(owner, DATA_SOURCE, "must match dataSourceRef");
    }
}

fn capacity(spec: &Value, problems: &mut Problems) {
    if is_empty(spec, "capacity") {
        problems.required("spec.capacity", "");
    }
    let amounts: Vec<(&String, &Value)> =
        spec["capacity"].as_object().into_iter().flatten().collect();
    if amounts.len() != 1 || amounts[0].0 != "storage" {
        let mut entries: Vec<String> = amounts
            .iter()
            .map(|(name, value)| format!("{name:?}:{}", limits::go_quantity(value)))
            .collect();
        entries.sort();
        let shown = match entries.is_empty() {
            true => "core.ResourceList(nil)".to_owned(),
            false => format!("core.ResourceList{{{}}}", entries.join(", ")),
        };
        let message = format!("Unsupported value: {shown}: supported values: \"storage\"");
        let reason = FieldErrorReason::NotSupported;
        problems.found.push(FieldError::new(reason, "spec.capacity", message));
    }
    for (name, amount) in amounts {
        let path = format!("spec.capacity[{name}]");
        resources::basic(amount, &path, problems);
        if resources::nanos(amount).is_some_and(|nanos| nanos <= 0) {
            problems.invalid(&path, amount, "must be greater than zero");
        }
    }
}

fn volume(spec: &Value, problems: &mut Problems) {
    if is_empty(spec, "accessModes") {
        problems.required("spec.accessModes", "");
    }
    access_modes(spec, "spec", problems);
    capacity(spec, problems);
    let policies = ["Delete", "Recycle", "Retain"];
    if !is_empty(spec, "persistentVolumeReclaimPolicy") {
        problems.one_of_if_set(spec, "spec", "persistentVolumeReclaimPolicy", &policies);
    }
    let affinity = &spec["nodeAffinity"];
    if affinity.is_object() {
        let path = "spec.nodeAffinity.required";
        match affinity["required"].is_object() {
            true => scheduling::node_selector(&affinity["required"], path, problems),
            false => problems.required(path, "must specify required node constraints"),
        }
    }
    volume_source(spec, problems);
    let is_root = spec["hostPath"].is_object()
        && text_at(spec, "/hostPath/path").split('/').all(|part| part.is_empty() || part == ".");
    if is_root && spec["persistentVolumeReclaimPolicy"] == "Recycle" {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        problems.forbidden("spec.persistentVolumeReclaimPolicy", detail);
    }
    class_name(spec, "spec", problems);
    problems.one_of_if_set(spec, "spec", "volumeMode", &["Block", "Filesystem"]);
}

fn volume_source(spec: &Value, problems: &mut Problems) {
    let mut is_chosen = false;
    for kind in SOURCES {
        let source = &spec[kind];
        if !source.is_object() {
            continue;
        }
        // Upstream has another name for this one in its paths.
        let shown = if kind == "gcePersistentDisk" { "persistentDisk" } else { kind };
        let path = format!("spec.{shown}");
        if is_chosen {
            problems.forbidden(&path, "may not specify more than 1 volume type");
            continue;
        }
        is_chosen = true;
        match kind {
            "local" => local(spec, source, problems),
            "csi" => csi(source, &path, problems),
            other => volume_sources::check(other, source, &path, problems),
        }
    }
    if !is_chosen {
        problems.required("spec", "must specify a volume type");
    }
}

/// A local volume must specify its node.
fn local(spec: &Value, source: &Value, problems: &mut Problems) {
    if is_empty(source, "path") {
        problems.required("spec.local.path", "");
    } else {
        no_backsteps(&source["path"], "spec.local.path", problems);
    }
    if !spec["nodeAffinity"].is_object() {
        problems.required("spec.nodeAffinity", "Local volume requires node affinity");
    }
}

fn csi(source: &Value, path: &str, problems: &mut Problems) {
    driver_name(text(source, "driver"), &format!("{path}.driver"), problems);
    if is_empty(source, "volumeHandle") {
        problems.required(&format!("{path}.volumeHandle"), "");
    }
    for field in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let reference = &source[field];
        if reference.is_object() {
            secret_reference(reference, &format!("{path}.{field}"), problems);
        }
    }
}

/// Checks the name of a CSI driver.
pub(super) fn driver_name(name: &str, path: &str, problems: &mut Problems) {
    const LENGTH_MAX: usize = 63;
    if name.is_empty() {
        problems.required(path, "");
    }
    if name.len() > LENGTH_MAX {
        problems.too_long(path, LENGTH_MAX);
    }
    for problem in subdomain_problems(&name.to_lowercase()) {
        problems.invalid(path, &name.into(), &problem);
    }
}

fn secret_reference(reference: &Value, path: &str, problems: &mut Problems) {
    for (field, check) in [
        ("name", subdomain_problems as fn(&str) -> Vec<String>),
        ("namespace", label_problems as fn(&str) -> Vec<String>),
    ] {
        let at = format!("{path}.{field}");
        if is_empty(reference, field) {
            problems.required(&at, "");
            continue;
        }
        for problem in check(text(reference, field)) {
            problems.invalid(&at, &reference[field], &problem);
        }
    }
}

/// A bound claim may grow, and any claim may be bound and get a class once; nothing else may
/// change.
pub(super) fn claim_update(object: &Value, old: &Value, problems: &mut Problems) {
    let (spec, old_spec) = (&object["spec"], &old["spec"]);
    let is_bound = object["status"]["phase"] == "Bound";
    let (mut new_fixed, mut old_fixed) = (spec.clone(), old_spec.clone());
    let annotation = old.pointer(CLASS_ANNOTATION).and_then(Value::as_str);
    if text(old_spec, "volumeName").is_empty() {
        copy_field(&mut old_fixed, spec, "volumeName");
    }
    let new_class = spec["storageClassName"].as_str();
    let class_is_allowed = annotation.is_none_or(|annotated| Some(annotated) == new_class);
    if new_class.is_some() && old_spec["storageClassName"].is_null() && class_is_allowed {
        copy_field(&mut new_fixed, old_spec, "storageClassName");
    }
    if object.pointer(CLASS_ANNOTATION) != old.pointer(CLASS_ANNOTATION)
        && !(object.pointer(CLASS_ANNOTATION).is_none() && new_class == annotation)
    {
        let path = "metadata.annotations[volume.beta.kubernetes.io/storage-class]";
        let shown = text_at(object, CLASS_ANNOTATION);
        problems.invalid(path, &shown.into(), "field is immutable");
    }
    if is_bound && let Some(size) = old_spec["resources"]["requests"].get("storage") {
        if let Some(Value::Object(requests)) = new_fixed.pointer_mut("/resources/requests") {
            requests.insert("storage".to_owned(), size.clone());
        }
        copy_field(&mut new_fixed, old_spec, "volumeAttributesClassName");
    }
    if new_fixed != old_fixed {
        let changes =
            go_structs::difference("core.PersistentVolumeClaimSpec", &old_fixed, &new_fixed);
        let detail = format!(
            "spec is immutable after creation except resources.requests and \
             volumeAttributesClassName for bound claims\n{changes}"
        );
        problems.forbidden("spec", &detail);
    }
    let size = |claim: &Value, pointer: &str| claim.pointer(pointer).and_then(resources::nanos);
    const SIZE: &str = "/spec/resources/requests/storage";
    let (new_size, old_size) = (size(object, SIZE), size(old, SIZE));
    if new_size < old_size
        && new_size.unwrap_or_default() <= size(old, "/status/capacity/storage").unwrap_or_default()
    {
        let detail = "field can not be less than status.capacity";
        problems.forbidden("spec.resources.requests.storage", detail);
    }
    problems.immutable("volumeMode", &spec["volumeMode"], &old_spec["volumeMode"]);
}

/// Copies a field to another object; removes it if it is absent.
fn copy_field(object: &mut Value, other: &Value, field: &str) {
    let Some(fields) = object.as_object_mut() else { return };
    match other.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.shift_remove(field),
    };
}

/// The source of a volume is immutable.
pub(super) fn volume_update(object: &Value, old: &Value, problems: &mut Problems) {
    let (spec, old_spec) = (&object["spec"], &old["spec"]);
    let mut settled = spec.clone();
    let old_driver = &old_spec["csi"];
    if old_driver.is_object()
        && old_driver["controllerExpandSecretRef"].is_null()
        && let Some(driver) = settled.get_mut("csi")
    {
        copy_field(driver, old_driver, "controllerExpandSecretRef");
    }
    if SOURCES.iter().any(|kind| settled[*kind] != old_spec[*kind]) {
        let changes = go_structs::difference("core.PersistentVolumeSource", old_spec, &settled);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{changes}");
        problems.forbidden("spec.persistentvolumesource", &detail);
    }
    problems.immutable("volumeMode", &spec["volumeMode"], &old_spec["volumeMode"]);
}

/// A path, as Go prints the struct.
const DATA_SOURCE: &str =
    "field.Path{name:\"dataSource\", index:\"\", parent:(*field.Path)(0xc000000000)}";

/// The errors of a claim's status.
pub(super) fn claim_status(object: &Value, problems: &mut Problems) {
    const STATES: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let status = &object["status"];
    let amounts = |field: &str| status[field].as_object().cloned().unwrap_or_default();
    for (name, amount) in amounts("capacity") {
        resources::basic(&amount, &format!("status.capacity[{name}]"), problems);
    }
    let path = "status.allocatedResourceStatus";
    for (name, state) in amounts("allocatedResourceStatuses") {
        allocated_name(&name, path, problems);
        if !state.as_str().is_some_and(|state| STATES.contains(&state)) {
            // Upstream prints a value that is not a string for Go.
            let listed = STATES.map(|state| format!("{state:?}")).join(", ");
            let message = format!("Unsupported value: {name}: supported values: {listed}");
            let reason = crate::FieldErrorReason::NotSupported;
            problems.found.push(crate::FieldError::new(reason, path, message));
        }
    }
    for (name, amount) in amounts("allocatedResources") {
        let path = "status.allocatedResources";
        if allocated_name(&name, path, problems) {
            resources::basic(&amount, &format!("{path}[{name}]"), problems);
        }
    }
}

/// `storage` is the only unprefixed resource of a claim.
fn allocated_name(name: &str, path: &str, problems: &mut Problems) -> bool {
    let before = problems.found.len();
    for problem in crate::names::qualified_name_problems(name) {
        problems.invalid(path, &name.into(), &problem);
    }
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    if problems.found.len() == before && is_native {
        problems.one_of(path, &name.into(), &["storage"]);
    }
    problems.found.len() == before
}
