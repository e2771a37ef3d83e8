use kopf::prelude::*;

#[derive(serde::Serialize, serde::Deserialize)]
struct Phase {
    phase: String,
}

#[kopf::on::create("kopfexamples")]
async fn handle(status: &mut Status<Phase>) {
    status.phase = "ready".into();
}

fn main() {}
