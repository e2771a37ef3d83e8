//! What you learn: operators for kinds that Kubernetes brings along, with the client of the cluster.
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kopf::prelude::*;
use kube::Api;

/// Writes down every pod that fails, in a config map beside it.
#[kopf::on::field(Pod, field = "status.phase", new = "Failed", needs = ["create configmaps"])]
async fn note_failure(pod: &Pod, namespace: Namespace, client: Client) -> Result {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let note: ConfigMap = serde_json::from_value(json!({
        "metadata": {"generateName": format!("{name}-failed-")},
        "data": {"message": pod.status.as_ref().and_then(|it| it.message.clone()).unwrap_or_default()},
    }))?;
    let notes: Api<ConfigMap> = Api::namespaced(client, &namespace);
    notes.create(&Default::default(), &note).await.retry_in(5.secs())?;
    Ok(())
}

fn main() -> kopf::Exit {
    kopf::operator!("builtins", [note_failure]).main()
}
