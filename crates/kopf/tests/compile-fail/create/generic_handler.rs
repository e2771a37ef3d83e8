use kopf::prelude::*;

#[kopf::on::create("kopfexamples")]
async fn handle<T: Send + Sync + 'static>(state: State<T>) {
    drop(state);
}

fn main() {}
