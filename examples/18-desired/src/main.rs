//! What you learn: desired children; declare what should exist, and the engine maintains it.
use kopf::children::Child;
use kopf::prelude::*;

/// Returns the children of a site. Labels, owners, the namespace and missing names are filled in.
#[kopf::on::desired("kopf.dev", "v1", "sites", children("deployments.apps", "services.v1"))]
fn children(spec: &Spec, name: Name) -> Result<Vec<Child>> {
    let replicas = spec["replicas"].as_u64().unwrap_or(1);
    if replicas > 10 {
        return Err(kopf::permanent("a site has ten replicas at most"));
    }
    let labels = json!({"site": *name});
    let mut all = vec![json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    })];
    if let Some(port) = spec["port"].as_u64() {
        all.push(json!({
            "apiVersion": "v1", "kind": "Service",
            "spec": {"selector": labels, "ports": [{"port": port}]},
        }));
    }
    Ok(all.into_iter().map(Child::from).collect())
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("desired", [children])
}

fn main() -> kopf::Exit {
    operator().main()
}
