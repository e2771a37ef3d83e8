use kopf::prelude::*;

#[kopf::on::create("kopfexamples")]
async fn handle(children: Children) {
    children.add("part", |stopped: Stopped| async move { drop(stopped) });
}

fn main() {}
