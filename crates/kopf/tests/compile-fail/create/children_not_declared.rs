use k8s_openapi::api::core::v1::Pod;
use kopf::children::Children;

#[kopf::on::create("kopfexamples", children(Pod))]
#[kopf::on::timer("kopfexamples", interval = "10s")]
async fn handle(pods: &Children<Pod>) {
    drop(pods);
}

fn main() {}
