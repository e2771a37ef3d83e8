//! What you learn: children: one Pod per object, adopted, and recorded in the status.
//!
//! The name of the Pod is derived from its owner, so a retried creation finds the Pod of the first
//! attempt instead of creating a second one.

use k8s_openapi::api::core::v1::Pod;
use kopf::children::{Children, Owner};
use kopf::prelude::*;
use kube::{CustomResource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A single Pod that does something very useful.
#[derive(CustomResource, Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "SimpleDeployment", namespaced)]
#[kube(status = "SimpleDeploymentStatus", shortname = "simdep", shortname = "sd")]
#[kube(printcolumn = r#"{"name": "Children", "type": "string", "jsonPath": ".status.children",
    "description": "The child Pod created by the operator."}"#)]
#[kube(printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#)]
pub struct SimpleDeploymentSpec {
    /// How long the Pod sleeps, in seconds.
    #[serde(default = "no_time")]
    #[schemars(regex(pattern = r"^[0-9]+$"))]
    pub sleepytime: String,
}

/// The status that the operator writes.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct SimpleDeploymentStatus {
    /// The uids of the Pods.
    #[serde(default)]
    pub children: Vec<String>,
    /// The phase of the Pod; empty if there is none.
    #[serde(default)]
    pub phase: String,
}

fn no_time() -> String {
    "0".into()
}

/// Starts exactly one Pod.
#[kopf::on::create(SimpleDeployment, needs = ["create,patch pods"])]
pub async fn start_pod(this: &SimpleDeployment, owner: Owner, client: Client) -> Result {
    // The time is an argument of the script, not part of its code.
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "simple",
                "image": "busybox",
                "command": ["sh", "-x", "-c", "echo \"I'm so very useful!\"; sleep \"$1\"", "sh"],
                "args": [this.spec.sleepytime],
            }],
        },
    });
    owner.strict().apply(&client, pod).await?;
    Ok(())
}

/// Records the Pods in the status, whenever one is created, changed or deleted.
#[kopf::on::observe(SimpleDeployment, children(Pod))]
pub async fn list_pods(pods: &Children<Pod>, status: &mut Status<SimpleDeploymentStatus>) {
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
    status.children = pods.iter().filter_map(ResourceExt::uid).collect();
    status.phase = pods.first().and_then(phase).unwrap_or_default();
}

/// The operator. Deletion needs no handler: the cluster removes the Pod together with its owner.
pub fn operator() -> kopf::Operator {
    kopf::operator!("simple-deployment", [start_pod, list_pods])
}
