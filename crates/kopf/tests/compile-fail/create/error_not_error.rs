use kopf::prelude::*;

struct Oops;

#[kopf::on::create("kopfexamples")]
async fn handle() -> Result<(), Oops> {
    Err(Oops)
}

fn main() {}
