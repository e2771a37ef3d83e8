//! What you learn: background work that runs as long as its object exists, and stops when asked.
use kopf::input::{Live, Stopped};
use kopf::prelude::*;

#[kopf::on::daemon("kopf.dev", "v1", "greetings", cancellation_timeout = "5s")]
async fn watch(live: Live<Spec>, stopped: Stopped) -> Result {
    while !stopped.wait(5.secs()).await {
        tracing::info!("the field is {} now", live.get()?["field"]);
    }
    tracing::info!("stopping because of {:?}", stopped.reason());
    Ok(())
}

/// Functions that are not async run on their own threads.
#[kopf::on::daemon("kopf.dev", "v1", "greetings", labels = {"slow": present}, initial_delay = "2s")]
fn watch_slowly(name: Name, stopped: Stopped) {
    while !stopped.wait_blocking(10.secs()) {
        println!("{name} is slow");
    }
}

pub fn operator() -> kopf::Operator {
    kopf::operator!("daemons", [watch, watch_slowly])
}

fn main() -> kopf::Exit {
    operator().main()
}
