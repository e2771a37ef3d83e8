//! Rules of each source of a pod's volume.
//!
//! Pure. `volumes` checks that a volume has exactly one source and passes it here.

use std::collections::HashSet;

use serde_json::Value;

use super::containers::{self, descending, no_backsteps};
use super::pod_spec::check_label;
use super::{Problems, resources, storage};
use crate::fields::{is_empty, list, text};
use crate::names::subdomain_problems;

/// The fields that may not be empty, by source.
const REQUIRED: [(&str, &[&str]); 15] = [
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("glusterfs", &["endpoints", "path"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("rbd", &["monitors", "image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &["monitors"]),
    ("flexVolume", &["driver"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
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
/// Pod fields that can be files in a volume.
const FILE_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
const LUN_MAX: i64 = 255;
/// The shortest and longest lifetime of a token, in seconds.
const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

/// Checks one source.
pub(super) fn check(kind: &str, source: &Value, path: &str, problems: &mut Problems) {
    let required = REQUIRED.iter().find(|(name, _)| *name == kind).map_or(&[][..], |it| it.1);
    for field in required {
        if is_empty(source, field) {
            problems.required(&format!("{path}.{field}"), "");
        }
    }
    match kind {
        "emptyDir" if resources::nanos(&source["sizeLimit"]).is_some_and(|size| size < 0) => {
            let detail = "SizeLimit field must be a valid resource quantity";
            problems.forbidden(&format!("{path}.sizeLimit"), detail);
        }
        "hostPath" => host_path(source, path, problems),
        "gitRepo" => descending(&source["directory"], &format!("{path}.directory"), problems),
        "gcePersistentDisk" | "awsElasticBlockStore" => {
            let partition = &source["partition"];
            if partition.as_i64().is_some_and(|number| !(0..=255).contains(&number)) {
                let detail = "must be between 1 and 255, inclusive";
                problems.invalid(&format!("{path}.partition"), partition, detail);
            }
        }
        "secret" => files(source, "secretName", path, problems),
        "configMap" => files(source, "name", path, problems),
        "nfs" => nfs(source, path, problems),
        "iscsi" => iscsi(source, path, problems),
        "flocker" => flocker(source, path, problems),
        "cinder" => secret_name(&source["secretRef"], path, problems),
        "quobyte" => quobyte(source, path, problems),
        "downwardAPI" => {
            mode(&source["defaultMode"], &format!("{path}.defaultMode"), problems);
            for file in list(source, "items") {
                downward_file(file, path, problems);
            }
        }
        "fc" => fibre_channel(source, path, problems),
        "flexVolume" => flex_options(source, path, problems),
        "azureDisk" => azure_disk(source, path, problems),
        "storageos" => storage_os(source, path, problems),
        "projected" => projected(source, path, problems),
        "csi" => csi(source, path, problems),
        "ephemeral" => ephemeral(source, path, problems),
        _ => {}
    }
}

/// Checks a path on the node.
fn host_path(source: &Value, path: &str, problems: &mut Problems) {
    if is_empty(source, "path") {
        problems.required(&format!("{path}.path"), "");
        return;
    }
    no_backsteps(&source["path"], &format!("{path}.path"), problems);
    problems.one_of_if_set(source, path, "type", &HOST_PATH_TYPES);
}

/// Checks an NFS share.
fn nfs(source: &Value, path: &str, problems: &mut Problems) {
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
        key_to_path(item, &format!("{path}.items[{index}]"), problems);
    }
}

fn key_to_path(item: &Value, path: &str, problems: &mut Problems) {
    for field in ["key", "path"] {
        if is_empty(item, field) {
            problems.required(&format!("{path}.{field}"), "");
        }
    }
    not_reserved(&item["path"], &format!("{path}.path"), problems);
    mode(&item["mode"], &format!("{path}.mode"), problems);
}

/// Checks that a path stays in its directory and does not look as if it left it.
fn not_reserved(target: &Value, path: &str, problems: &mut Problems) {
    descending(target, path, problems);
    let text = target.as_str().unwrap_or_default();
    if text.starts_with("..") && !text.starts_with("../") {
        problems.invalid(path, target, "must not start with '..'");
    }
}

fn mode(mode: &Value, path: &str, problems: &mut Problems) {
    if mode.as_i64().is_some_and(|mode| !(0..=MODE_MAX).contains(&mode)) {
        problems.invalid(path, mode, MODE_DETAIL);
    }
}

fn secret_name(reference: &Value, path: &str, problems: &mut Problems) {
    if reference.is_object() && is_empty(reference, "name") {
        problems.required(&format!("{path}.secretRef.name"), "");
    }
}

fn lun(value: &Value, path: &str, problems: &mut Problems) {
    if value.as_i64().is_some_and(|number| !(0..=LUN_MAX).contains(&number)) {
        problems.invalid(&format!("{path}.lun"), value, "must be between 0 and 255, inclusive");
    }
}

fn iscsi(source: &Value, path: &str, problems: &mut Problems) {
    if is_empty(source, "targetPortal") {
        problems.required(&format!("{path}.targetPortal"), "");
    }
    if is_empty(source, "iqn") {
        problems.required(&format!("{path}.iqn"), "");
    } else {
        initiator(&source["iqn"], &format!("{path}.iqn"), problems);
    }
    lun(&source["lun"], path, problems);
    let needs_secret = source["chapAuthDiscovery"] == true || source["chapAuthSession"] == true;
    if needs_secret && !source["secretRef"].is_object() {
        problems.required(&format!("{path}.secretRef"), "");
    }
    if source["initiatorName"].is_string() {
        initiator(&source["initiatorName"], &format!("{path}.initiatorname"), problems);
    }
}

/// Checks the name of an iSCSI node in one of its three formats.
fn initiator(name: &Value, path: &str, problems: &mut Problems) {
    let text = name.as_str().unwrap_or_default();
    let is_word = |part: &str, length: usize| {
        part.len() == length && part.chars().all(|it| it.is_ascii_alphanumeric())
    };
    let is_valid = if text.starts_with("iqn") {
        is_qualified_initiator(text)
    } else if text.starts_with("eui") {
        text.get(4..).is_some_and(|rest| is_word(rest, 16))
    } else if text.starts_with("naa") {
        text.get(4..).is_some_and(|rest| is_word(rest, 32))
    } else {
        // The message about a persistent volume is shorter.
        let detail = match path.starts_with("spec.iscsi.") {
            true => "must be valid format",
            false => "must be valid format starting with iqn, eui, or naa",
        };
        problems.invalid(path, name, detail);
        return;
    };
    if !is_valid {
        problems.invalid(path, name, "must be valid format");
    }
}

/// `iqn.YEAR-MONTH.DOMAIN:NAME`.
fn is_qualified_initiator(text: &str) -> bool {
    let Some((head, name)) = text.split_once(':') else { return false };
    let Some(rest) = head.strip_prefix("iqn.") else { return false };
    let Some((date, domain)) = rest.split_once('.') else { return false };
    let is_digit = |character: char| character.is_ascii_digit();
    let is_date = date.split_once('-').is_some_and(|(year, month)| {
        year.len() == 4 && month.len() == 2 && year.chars().chain(month.chars()).all(is_digit)
    });
    let is_domain = !domain.is_empty()
        && domain.chars().all(|it| it.is_ascii_alphanumeric() || matches!(it, '-' | '.'));
    let is_name =
        !name.is_empty() && !name.chars().any(|it| it.is_whitespace() || ",;*&$|".contains(it));
    is_date && is_domain && is_name
}

fn flocker(source: &Value, path: &str, problems: &mut Problems) {
    let (name, id) = (text(source, "datasetName"), text(source, "datasetUUID"));
    if name.is_empty() && id.is_empty() {
        problems.required(path, "one of datasetName and datasetUUID is required");
    }
    if !name.is_empty() && !id.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        problems.invalid(path, &"resource".into(), detail);
    }
    if name.contains('/') {
        problems.invalid(&format!("{path}.datasetName"), &name.into(), "must not contain '/'");
    }
}

fn quobyte(source: &Value, path: &str, problems: &mut Problems) {
    const DETAIL: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = text(source, "registry");
    if registry.is_empty() {
        problems.required(&format!("{path}.registry"), DETAIL);
    } else {
        for pair in registry.split(',') {
            if pair.matches(':').count() != 1 {
                problems.invalid(&format!("{path}.registry"), &source["registry"], DETAIL);
            }
        }
    }
    if is_empty(source, "volume") {
        problems.required(&format!("{path}.volume"), "");
    }
}

/// Checks a file with a field of the pod. Upstream leaves out the index of the file.
fn downward_file(file: &Value, path: &str, problems: &mut Problems) {
    if is_empty(file, "path") {
        problems.required(&format!("{path}.path"), "");
    }
    not_reserved(&file["path"], &format!("{path}.path"), problems);
    let (field, resource) = (&file["fieldRef"], &file["resourceFieldRef"]);
    if field.is_object() {
        containers::field_reference(field, &format!("{path}.fieldRef"), &FILE_FIELDS, problems);
        if resource.is_object() {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            problems.invalid(path, &"resource".into(), detail);
        }
    } else if resource.is_object() {
        let at = format!("{path}.resourceFieldRef");
        containers::resource_reference(resource, &at, true, problems);
    } else {
        problems.required(path, "one of fieldRef and resourceFieldRef is required");
    }
    mode(&file["mode"], &format!("{path}.mode"), problems);
}

fn fibre_channel(source: &Value, path: &str, problems: &mut Problems) {
    let at = format!("{path}.targetWWNs");
    let has_names = !is_empty(source, "targetWWNs");
    match (has_names, !is_empty(source, "wwids")) {
        (false, false) => {
            problems.required(&at, "must specify either targetWWNs or wwids, but not both");
        }
        (true, true) => {
            let detail = "targetWWNs and wwids can not be specified simultaneously";
            let shown = super::go_text::string_list(&source["targetWWNs"]);
            problems.invalid_text(&at, &shown, detail);
        }
        _ => {}
    }
    if has_names && source["lun"].is_null() {
        problems.required(&format!("{path}.lun"), "lun is required if targetWWNs is specified");
    } else if has_names {
        lun(&source["lun"], path, problems);
    }
}

fn flex_options(source: &Value, path: &str, problems: &mut Problems) {
    for (key, _) in source["options"].as_object().into_iter().flatten() {
        let domain = key.split_once('/').map_or(key.as_str(), |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            let path = format!("{path}.options[{key}]");
            problems.invalid(&path, &key.as_str().into(), detail);
        }
    }
}

fn azure_disk(source: &Value, path: &str, problems: &mut Problems) {
    const MANAGED: &str = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/\
                           microsoft.compute/disks/{disk-id}";
    const BLOB: &str =
        "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let modes = ["None", "ReadOnly", "ReadWrite"];
    problems.one_of_if_set(source, path, "cachingMode", &modes);
    problems.one_of_if_set(source, path, "kind", &["Dedicated", "Managed", "Shared"]);
    if source["kind"].is_null() {
        return;
    }
    let (start, shape) = match text(source, "kind") {
        "Managed" => ("/subscriptions/", MANAGED),
        _ => ("https://", BLOB),
    };
    let address = text(source, "diskURI");
    if !address.starts_with(start) {
        problems.one_of(&format!("{path}.diskURI"), &address.into(), &[shape]);
    }
}

fn storage_os(source: &Value, path: &str, problems: &mut Problems) {
    if is_empty(source, "volumeName") {
        problems.required(&format!("{path}.volumeName"), "");
    }
    for field in ["volumeName", "volumeNamespace"] {
        let name = text(source, field);
        if !name.is_empty() {
            check_label(name, &format!("{path}.{field}"), problems);
        }
    }
    secret_name(&source["secretRef"], path, problems);
}

fn projected(source: &Value, path: &str, problems: &mut Problems) {
    mode(&source["defaultMode"], &format!("{path}.defaultMode"), problems);
    let mut taken = HashSet::new();
    for (index, part) in list(source, "sources").iter().enumerate() {
        let at = format!("{path}.sources[{index}]");
        let mut count = 0;
        for kind in ["secret", "configMap", "downwardAPI", "serviceAccountToken"] {
            let projection = &part[kind];
            if !projection.is_object() {
                continue;
            }
            count += 1;
            let at = format!("{at}.{kind}");
            match kind {
                "serviceAccountToken" => token(projection, &at, path, problems),
                "downwardAPI" => {
                    for file in list(projection, "items") {
                        downward_file(file, &at, problems);
                        let shown = text(file, "path");
                        take(&mut taken, shown, shown, path, problems);
                    }
                }
                _ => projected_files(projection, &at, path, &mut taken, problems),
            }
        }
        if count > 1 {
            problems.forbidden(&at, "may not specify more than 1 volume type per source");
        }
    }
}

fn projected_files<'part>(
    projection: &'part Value,
    path: &str,
    volume: &str,
    taken: &mut HashSet<&'part str>,
    problems: &mut Problems,
) {
    let name = text(projection, "name");
    if name.is_empty() {
        problems.required(&format!("{path}.name"), "");
    }
    for (index, item) in list(projection, "items").iter().enumerate() {
        key_to_path(item, &format!("{path}.items[{index}]"), problems);
        take(taken, text(item, "path"), name, volume, problems);
    }
}

/// Notes a path in a volume; the path may not be there yet.
fn take<'part>(
    taken: &mut HashSet<&'part str>,
    target: &'part str,
    shown: &str,
    path: &str,
    problems: &mut Problems,
) {
    if !target.is_empty() && !taken.insert(target) {
        problems.invalid(path, &shown.into(), "conflicting duplicate paths");
    }
}

/// Checks a token; upstream reports its path at the volume.
fn token(projection: &Value, path: &str, volume: &str, problems: &mut Problems) {
    let at = format!("{path}.expirationSeconds");
    let seconds = projection["expirationSeconds"].as_i64().unwrap_or_default();
    if seconds < TOKEN_SECONDS_MIN {
        problems.invalid(&at, &seconds.into(), "may not specify a duration less than 10 minutes");
    }
    if seconds > TOKEN_SECONDS_MAX {
        let detail = "may not specify a duration larger than 2^32 seconds";
        problems.invalid(&at, &seconds.into(), detail);
    }
    if is_empty(projection, "path") {
        problems.required(&format!("{volume}.path"), "");
    } else {
        not_reserved(&projection["path"], &format!("{volume}.path"), problems);
    }
}

fn csi(source: &Value, path: &str, problems: &mut Problems) {
    storage::driver_name(text(source, "driver"), &format!("{path}.driver"), problems);
    let reference = &source["nodePublishSecretRef"];
    if reference.is_object() && is_empty(reference, "name") {
        problems.required(&format!("{path}.nodePublishSecretRef.name"), "");
    } else if reference.is_object() {
        for problem in subdomain_problems(text(reference, "name")) {
            problems.invalid(&format!("{path}.name"), &reference["name"], &problem);
        }
    }
}

fn ephemeral(source: &Value, path: &str, problems: &mut Problems) {
    let template = &source["volumeClaimTemplate"];
    let path = format!("{path}.volumeClaimTemplate");
    if !template.is_object() {
        problems.required(&path, "");
        return;
    }
    let metadata = &template["metadata"];
    crate::meta::validate_annotations(
        &metadata["annotations"],
        &format!("{path}.metadata.annotations"),
        &mut problems.found,
    );
    let labels = format!("{path}.metadata.labels");
    crate::meta::validate_labels(&metadata["labels"], &labels, &mut problems.found);
    for (field, value) in metadata.as_object().into_iter().flatten() {
        let is_allowed = matches!(field.as_str(), "annotations" | "labels");
        if !is_allowed && !value.is_null() && value != "" {
            problems.forbidden(&format!("{path}.metadata.{field}"), "cannot be set");
        }
    }
    storage::claim_spec(&template["spec"], &format!("{path}.spec"), problems);
}
