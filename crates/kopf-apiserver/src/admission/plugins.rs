//! What upstream compiles in as admission plugins and is not part of a kind's own strategy:
//! the default class and the protection finalizers of volumes.
//!
//! Pure. Plugins about pods, services and jobs are with their kinds.

use serde_json::{Value, json};

use super::{AdmissionRequest, Operation};
use crate::controllers::fields::{self, at};
use crate::resource::ResourceInfo;
use crate::store::Snapshot;

/// Annotation of the class for claims that name none.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// Whether any plugin looks at this resource.
pub(super) fn concern(resource: &ResourceInfo) -> bool {
    matches!(&*resource.table, "persistentvolumeclaims" | "persistentvolumes")
}

/// Lets every plugin change the new object.
pub(super) fn mutate(snapshot: &Snapshot, request: &mut AdmissionRequest<'_>) {
    if request.operation != Operation::Create || !request.subresource.is_empty() {
        return;
    }
    let Some(object) = request.object.as_mut() else { return };
    match &*request.resource.table {
        "persistentvolumeclaims" => {
            choose_class(snapshot, object);
            add_finalizer(object, "kubernetes.io/pvc-protection");
        }
        "persistentvolumes" => add_finalizer(object, "kubernetes.io/pv-protection"),
        _ => {}
    }
}

/// Gives a claim without class the newest default class.
fn choose_class(snapshot: &Snapshot, claim: &mut Value) {
    if at(claim, &["spec", "storageClassName"]).is_some_and(|class| !class.is_null()) {
        return;
    }
    let newest = snapshot
        .list("storageclasses.storage.k8s.io", "")
        .filter(|(_, class)| fields::annotation(class.content(), DEFAULT_CLASS) == Some("true"))
        .max_by_key(|(_, class)| class.metadata_text("creationTimestamp").to_owned());
    if let Some((_, class)) = newest {
        fields::set(claim, &["spec", "storageClassName"], json!(class.name()));
    }
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    if !fields::finalizers(object).contains(&finalizer) {
        let mut finalizers = fields::items(object, &["metadata", "finalizers"]).to_vec();
        finalizers.push(json!(finalizer));
        fields::set(object, &["metadata", "finalizers"], Value::Array(finalizers));
    }
}
