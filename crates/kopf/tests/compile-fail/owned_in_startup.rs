use k8s_openapi::api::core::v1::Pod;
use kopf::prelude::*;

#[kopf::on::startup]
async fn handle(pods: &Owned<Pod>) {
    drop(pods);
}

fn main() {}
