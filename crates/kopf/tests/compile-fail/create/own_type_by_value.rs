#[derive(serde::Deserialize)]
struct Sizes {
    size: u32,
}

#[kopf::on::create("kopfexamples")]
async fn handle(sizes: Sizes) {
    println!("{}", sizes.size);
}

fn main() {}
