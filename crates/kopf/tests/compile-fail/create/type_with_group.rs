#[kopf::on::create(k8s_openapi::api::core::v1::Pod, group = "apps")]
async fn handle() {}

fn main() {}
