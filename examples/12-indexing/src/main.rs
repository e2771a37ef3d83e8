//! What you learn: in-memory indexes of objects, named and typed by the functions that fill them.
use k8s_openapi::api::core::v1::Pod;
use kopf::index::Index;
use kopf::prelude::*;

#[kopf::on::index(Pod)]
fn pods_by_node(pod: &Pod, name: Name) -> Option<(String, String)> {
    let node = pod.spec.as_ref()?.node_name.clone()?;
    Some((node, name.into()))
}

#[kopf::on::timer("v1", "nodes", interval = "10s")]
async fn count(name: Name, pods: &Index<pods_by_node>) {
    let names = pods.get(&name.0);
    println!("node {name} has {} pods: {names:?}", names.len());
}

#[kopf::on::probe]
async fn nodes_in_use(pods: &Index<pods_by_node>) -> usize {
    pods.keys().len()
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("indexing", [pods_by_node, count, nodes_in_use])
}

fn main() -> kopf::Exit {
    operator().main()
}
