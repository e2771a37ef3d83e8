use k8s_openapi::api::core::v1::{Pod, Secret};
use kopf::children::Children;

#[kopf::on::delete("kopfexamples", children(Pod))]
async fn handle(pods: &Children<Pod>, secrets: &Children<Secret>) {
    println!("{} {}", pods.len(), secrets.len());
}

fn main() {}
