#[kopf::on::desired("kopfexamples", children("pods.v1"))]
fn children() {}

fn main() {}
