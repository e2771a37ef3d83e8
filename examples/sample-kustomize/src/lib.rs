//! What you learn: manifests with overlays instead of templates, a custom login, packaging.
//!
//! The operator of a training: a Sample with a `count` becomes a Deployment with that many
//! replicas. The Deployment is a manifest in a file; an overlay changes what differs per Sample. By
//! default, the overlay is built and applied in this process; [`kubectl`] does the same with
//! `kubectl apply -k`.

pub mod kubectl;
pub mod overlay;

use std::path::Path;

use kopf::children::Owner;
use kopf::login::{self, LoginResult};
use kopf::prelude::*;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use overlay::Overlay;

/// A Deployment with a number of replicas.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "nuvolaris.org", version = "v1", kind = "Sample", namespaced)]
#[kube(status = "SampleStatus", shortname = "sam")]
#[kube(printcolumn = r#"{"name": "Count", "type": "integer", "jsonPath": ".spec.count"}"#)]
#[kube(printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.message"}"#)]
pub struct SampleSpec {
    /// The number of replicas.
    pub count: u32,
}

/// The status of a Sample.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct SampleStatus {
    /// The last action.
    #[serde(default)]
    pub message: String,
}

/// The token of the service account, which every container in a cluster has.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Uses the service account inside a cluster, and the kubeconfig elsewhere.
#[kopf::on::login]
pub async fn sample_login() -> Result<LoginResult> {
    if Path::new(TOKEN).is_file() {
        tracing::debug!("found a token: login via the service account");
        return login::with_service_account();
    }
    tracing::debug!("login via the kubeconfig");
    login::with_kubeconfig().await
}

/// Sets the replicas of the Deployment, on creation and after every change.
#[kopf::on::create(Sample, needs = ["create,patch deployments.apps"])]
#[kopf::on::update(Sample, field = "spec")]
pub async fn sample_apply(
    this: &Sample,
    owner: Owner,
    client: Client,
    status: &mut Status<SampleStatus>,
) -> Result {
    // An invalid manifest is part of the program, so a retry would not help.
    let deployment = Overlay::of(this).apply(&overlay::base()).permanent()?;
    let deployment = owner.apply(&client, deployment).await?;
    let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
    status.message = format!("applied {name} with {} replicas", this.spec.count);
    Ok(())
}

/// The operator. Deletion needs no handler: the cluster removes the Deployment with its owner.
pub fn operator() -> kopf::Operator {
    kopf::operator!("sample-kustomize", [sample_login, sample_apply])
}
