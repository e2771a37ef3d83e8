//! Rows of volumes, claims and storage classes.

use serde_json::{Value, json};

use super::Row;
use super::format::list;

pub(super) fn cells(resource: &str, row: &Row<'_>) -> Option<Vec<Value>> {
    Some(match resource {
        "persistentvolumes" => volume(row),
        "persistentvolumeclaims" => claim(row),
        "storageclasses" => class(row),
        "volumeattachments" => attachment(row),
        "csidrivers" => driver(row),
        "csinodes" => vec![row.name(), json!(row.size("/spec/drivers")), row.age()],
        _ => return None,
    })
}

/// `RWO,ROX,RWX,RWOP`, in this order.
fn access_modes(modes: &Value) -> String {
    let has = |mode: &str| list(modes).iter().any(|each| each == mode);
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let short: Vec<&str> =
        short.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect();
    short.join(",")
}

fn storage_class(row: &Row<'_>) -> Value {
    let annotation = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
    match row.text(annotation) {
        "" => json!(row.text("/spec/storageClassName")),
        class => json!(class),
    }
}

fn phase(row: &Row<'_>) -> Value {
    json!(if row.is_deleting() { "Terminating" } else { row.text("/status/phase") })
}

fn volume(row: &Row<'_>) -> Vec<Value> {
    let claim = match row.value("/spec/claimRef") {
        Value::Null => String::new(),
        _ => {
            format!("{}/{}", row.text("/spec/claimRef/namespace"), row.text("/spec/claimRef/name"))
        }
    };
    vec![
        row.name(),
        row.text_or("/spec/capacity/storage", "0"),
        json!(access_modes(row.value("/spec/accessModes"))),
        json!(row.text("/spec/persistentVolumeReclaimPolicy")),
        phase(row),
        json!(claim),
        storage_class(row),
        row.text_or("/spec/volumeAttributesClassName", "<unset>"),
        json!(row.text("/status/reason")),
        row.age(),
        row.text_or("/spec/volumeMode", "<unset>"),
    ]
}

fn claim(row: &Row<'_>) -> Vec<Value> {
    let is_bound = !row.text("/spec/volumeName").is_empty();
    let (capacity, modes) = if is_bound {
        (
            row.text_or("/status/capacity/storage", "0"),
            access_modes(row.value("/status/accessModes")),
        )
    } else {
        (json!(""), String::new())
    };
    vec![
        row.name(),
        phase(row),
        json!(row.text("/spec/volumeName")),
        capacity,
        json!(modes),
        storage_class(row),
        row.text_or("/spec/volumeAttributesClassName", "<unset>"),
        row.age(),
        row.text_or("/spec/volumeMode", "<unset>"),
    ]
}

fn class(row: &Row<'_>) -> Vec<Value> {
    let is_default =
        ["storageclass.kubernetes.io", "storageclass.beta.kubernetes.io"].iter().any(|prefix| {
            row.text(&format!("/metadata/annotations/{prefix}~1is-default-class")) == "true"
        });
    let suffix = if is_default { " (default)" } else { "" };
    vec![
        json!(format!("{}{suffix}", row.text("/metadata/name"))),
        json!(row.text("/provisioner")),
        row.text_or("/reclaimPolicy", "Delete"),
        row.text_or("/volumeBindingMode", "Immediate"),
        json!(row.flag_or("/allowVolumeExpansion", false)),
        row.age(),
    ]
}

fn attachment(row: &Row<'_>) -> Vec<Value> {
    vec![
        row.name(),
        json!(row.text("/spec/attacher")),
        json!(row.text("/spec/source/persistentVolumeName")),
        json!(row.text("/spec/nodeName")),
        json!(row.flag_or("/status/attached", false)),
        row.age(),
    ]
}

fn driver(row: &Row<'_>) -> Vec<Value> {
    let modes: Vec<&str> =
        row.list("/spec/volumeLifecycleModes").iter().filter_map(Value::as_str).collect();
    let modes = if modes.is_empty() { "<none>".to_owned() } else { modes.join(",") };
    let audiences = match row.value("/spec/tokenRequests") {
        Value::Null => "<unset>".to_owned(),
        requests => {
            let audiences =
                list(requests).iter().map(|one| one["audience"].as_str().unwrap_or_default());
            audiences.collect::<Vec<_>>().join(",")
        }
    };
    vec![
        row.name(),
        json!(row.flag_or("/spec/attachRequired", true)),
        json!(row.flag_or("/spec/podInfoOnMount", false)),
        json!(row.flag_or("/spec/storageCapacity", false)),
        json!(audiences),
        json!(row.flag_or("/spec/requiresRepublish", false)),
        json!(modes),
        row.age(),
    ]
}
