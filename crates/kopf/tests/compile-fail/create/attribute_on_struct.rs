#[kopf::on::create("kopfexamples")]
struct Handler;

fn main() {}
