#[kopf::on::create("kopfexamples")]
async fn handle(retry: u32) {
    println!("{retry}");
}

fn main() {}
