//! What you learn: operators for built-in Kubernetes kinds, with the client of the cluster.
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kopf::input::Namespace;
use kopf::prelude::*;
use kube::Api;
use kube::api::{Patch, PatchParams};

/// Records every failed pod in a config map next to it.
#[kopf::on::field(Pod, field = "status.phase", new = "Failed", needs = ["create,patch configmaps"])]
async fn note_failure(pod: &Pod, namespace: Namespace, client: Client) -> Result {
    let name = format!("{}-failed", pod.metadata.name.as_deref().unwrap_or_default());
    let note = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"message": pod.status.as_ref().and_then(|it| it.message.clone()).unwrap_or_default()},
    });
    // The name is derived from the pod's name, so a retry does not create a second config map.
    let notes: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let applying = PatchParams::apply("builtins").force();
    let note = Patch::Apply(&note);
    notes.patch(&name, &applying, &note).await.retry_in(5.secs())?;
    Ok(())
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("builtins", [note_failure])
}

fn main() -> kopf::Exit {
    operator().main()
}
