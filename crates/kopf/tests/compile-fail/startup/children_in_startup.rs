use k8s_openapi::api::core::v1::Pod;
use kopf::children::Children;

#[kopf::on::startup]
async fn handle(pods: &Children<Pod>) {
    drop(pods);
}

fn main() {}
