use kopf::input::{Live, Object};

#[kopf::on::create("kopfexamples")]
async fn handle(live: Live<Object>) {
    drop(live);
}

fn main() {}
