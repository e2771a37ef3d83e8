use k8s_openapi::api::core::v1::Pod;
use kopf::prelude::*;

#[kopf::on::create("kopfexamples", children(Pod))]
#[kopf::timer("kopfexamples", interval = "10s")]
async fn handle(pods: &Owned<Pod>) {
    drop(pods);
}

fn main() {}
