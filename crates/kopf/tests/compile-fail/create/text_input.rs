#[kopf::on::create("kopfexamples")]
async fn handle(name: &str) {
    println!("{name}");
}

fn main() {}
