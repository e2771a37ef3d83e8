use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kopf::prelude::*;

#[kopf::observe(ConfigMap, children(Pod))]
async fn count(pods: &Owned<Pod>, secrets: &Owned<Secret>) {
    println!("{} {}", pods.len(), secrets.len());
}

fn main() {}
