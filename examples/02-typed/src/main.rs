//! What you learn: a definition with columns, changes of one field, and Kubernetes events.
use kopf::input::Recorder;
use kopf::prelude::*;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Database", namespaced)]
#[kube(status = "DatabaseStatus", shortname = "db")]
#[kube(printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#)]
#[serde(rename_all = "camelCase")]
struct DatabaseSpec {
    /// The size of the disk.
    size_gb: u32,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct DatabaseStatus {
    #[serde(default)]
    phase: String,
}

/// Prepares the disk.
#[kopf::on::create(Database)]
async fn prepare(db: &Database, status: &mut Status<DatabaseStatus>) {
    tracing::info!("a disk of {} GB", db.spec.size_gb);
    status.phase = "Ready".into(); // written once, and only if changed
}

/// Grows the disk, or fails permanently if it would shrink.
#[kopf::on::field(Database, field = "spec.sizeGb")]
async fn resize(Change { old, new }: Change<u32>, recorder: Recorder) -> Result {
    if new < old {
        return Err(kopf::permanent("disks cannot shrink"));
    }
    recorder.normal("Resized", format!("from {old:?} to {new:?} GB"));
    Ok(())
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("typed", [prepare, resize])
}

fn main() -> kopf::Exit {
    operator().main()
}
