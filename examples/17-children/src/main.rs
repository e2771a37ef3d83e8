//! What you learn: children created by handlers, and how to derive a state from them.
use k8s_openapi::api::core::v1::Pod;
use kopf::children::{Children, Owner};
use kopf::prelude::*;

/// Creates a Pod per member. A retry creates no duplicates, and the Pods are deleted with their
/// crew.
#[kopf::on::create("kopf.dev", "v1", "crews", needs = ["create,patch pods"])]
async fn hire(spec: &Spec, name: Name, owner: Owner, client: Client) -> Result {
    let members = spec["members"].as_array().cloned().unwrap_or_default();
    for member in members.iter().filter_map(Value::as_str) {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{name}-{member}")},
            "spec": {"containers": [{"name": "sailor", "image": "busybox"}]},
        });
        owner.apply(&client, pod).await?;
    }
    Ok(())
}

/// Called whenever the crew or one of its Pods changes; gets all Pods without a request.
#[kopf::on::observe("kopf.dev", "v1", "crews", children(Pod))]
async fn muster(pods: &Children<Pod>, patch: &mut Patch) {
    let is_running = |pod: &&Pod| {
        pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running"))
    };
    let running = pods.iter().filter(is_running).count();
    patch.set("status.aboard", format!("{running} of {}", pods.len()));
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("children", [hire, muster])
}

fn main() -> kopf::Exit {
    operator().main()
}
