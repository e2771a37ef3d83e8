use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kopf::children::Children;

#[kopf::on::observe(ConfigMap, children(Pod))]
async fn count(pods: &Children<Pod>, secrets: &Children<Secret>) {
    println!("{} {}", pods.len(), secrets.len());
}

fn main() {}
