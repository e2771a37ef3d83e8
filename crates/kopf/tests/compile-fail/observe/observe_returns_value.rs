#[kopf::on::observe("kopfexamples", children("pods.v1"))]
async fn look() -> u32 {
    5
}

fn main() {}
