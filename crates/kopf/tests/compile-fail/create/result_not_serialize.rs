use kopf::prelude::*;

struct Done;

#[kopf::on::create("kopfexamples")]
async fn handle() -> Result<Done> {
    Ok(Done)
}

fn main() {}
