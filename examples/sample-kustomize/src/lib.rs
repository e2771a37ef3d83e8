//! What you learn: manifests with overlays instead of templates, a login of your own, packaging.
//!
//! The operator of a training: a Sample with a `count` becomes a Deployment with as many replicas.
//! The Deployment is a manifest in a file; an overlay changes what differs per Sample. By default
//! overlay and apply happen in this process; [`kubectl`] does the same by `kubectl apply -k`.

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

/// So many replicas, please.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "nuvolaris.org", version = "v1", kind = "Sample", namespaced)]
#[kube(status = "SampleStatus", shortname = "sam")]
#[kube(printcolumn = r#"{"name": "Count", "type": "integer", "jsonPath": ".spec.count"}"#)]
#[kube(printcolumn = r#"{"name": "Message", "type": "string", "jsonPath": ".status.message"}"#)]
pub struct SampleSpec {
    /// The number of replicas.
    pub count: u32,
}

/// What the operator made of it.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct SampleStatus {
    /// What was done last.
    #[serde(default)]
    pub message: String,
}

/// The token of the service account, which every container in a cluster has.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// In a cluster by the service account, elsewhere by the kubeconfig.
#[kopf::on::login]
pub async fn sample_login() -> Result<LoginResult> {
    if Path::new(TOKEN).is_file() {
        tracing::debug!("found a token: login via the service account");
        return login::with_service_account();
    }
    tracing::debug!("login via the kubeconfig");
    login::with_kubeconfig().await
}

/// Brings the Deployment to the wanted count, on creation and after every change.
#[kopf::on::create(Sample, needs = ["create,patch deployments.apps"])]
#[kopf::on::update(Sample, field = "spec")]
pub async fn sample_apply(
    this: &Sample,
    owner: Owner,
    client: Client,
    status: &mut Status<SampleStatus>,
) -> Result {
    // A bad manifest is in the program itself; trying again would not mend it.
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
