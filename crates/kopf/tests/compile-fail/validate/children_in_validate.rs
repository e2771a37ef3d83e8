use k8s_openapi::api::core::v1::Pod;
use kopf::children::Children;

#[kopf::on::validate("kopfexamples")]
async fn handle(pods: &Children<Pod>) {
    drop(pods);
}

fn main() {}
