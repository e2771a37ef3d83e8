use kopf::prelude::*;

#[kopf::on::validate("kopfexamples")]
async fn handle() -> Result<bool> {
    Ok(true)
}

fn main() {}
