use kopf::prelude::*;

#[kopf::on::delete("kopfexamples")]
async fn handle(diff: &Diff) {
    println!("{diff}");
}

fn main() {}
