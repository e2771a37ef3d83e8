use kopf::index::Index;

#[derive(Clone)]
struct ByLabel;

#[kopf::on::create("pods")]
async fn handle(pods: &Index<ByLabel>) {
    drop(pods);
}

fn main() {}
