use kopf::prelude::*;

#[kopf::on::create("kopfexamples")]
async fn handle(size: Param<u32>) {
    println!("{}", *size);
}

fn main() {}
