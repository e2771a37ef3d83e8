#[kopf::on::index("kopfexamples", children("pods.v1"))]
fn handle() -> (u32, u32) {
    (1, 2)
}

fn main() {}
