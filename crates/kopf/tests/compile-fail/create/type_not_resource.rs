#[derive(serde::Deserialize)]
struct Sizes {}

#[kopf::on::create(Sizes)]
async fn handle(sizes: &Sizes) {
    drop(sizes);
}

fn main() {}
