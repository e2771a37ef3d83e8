use k8s_openapi::api::core::v1::{Pod, Secret};
use kopf::prelude::*;

#[kopf::on::delete("kopfexamples", children(Pod))]
async fn handle(pods: &Owned<Pod>, secrets: &Owned<Secret>) {
    println!("{} {}", pods.len(), secrets.len());
}

fn main() {}
