//! What you learn: work beside an object for as long as it exists, which ends when asked to.
use kopf::prelude::*;

#[kopf::daemon("kopf.dev", "v1", "greetings", cancellation_timeout = "5s")]
async fn watch(live: Live<Spec>, stopped: Stopped, log: Log) -> Result {
    while !stopped.wait(5.secs()).await {
        log.info(format!("the field is {} now", live.get()?["field"]));
    }
    log.info(format!("stopping because of {:?}", stopped.reason()));
    Ok(())
}

/// Functions that are not async run on threads of their own.
#[kopf::daemon("kopf.dev", "v1", "greetings", labels = {"slow": present}, initial_delay = "2s")]
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
