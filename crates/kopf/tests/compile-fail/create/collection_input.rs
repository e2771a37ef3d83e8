#[kopf::on::create("kopfexamples")]
async fn handle(names: Vec<String>) {
    println!("{names:?}");
}

fn main() {}
