use kopf::input::{Stopped, SubHandlers};

#[kopf::on::create("kopfexamples")]
async fn handle(sub_handlers: SubHandlers) {
    sub_handlers.add("part", |stopped: Stopped| async move { drop(stopped) });
}

fn main() {}
