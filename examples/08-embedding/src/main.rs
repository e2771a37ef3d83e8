//! What you learn: an operator inside your own program, next to other work; closures as handlers.
use std::process::{ExitCode, Termination as _};
use std::sync::atomic::{AtomicU32, Ordering};

use kopf::prelude::*;
use kopf::{Config, Operator};

#[derive(Default)]
struct Seen(AtomicU32);

pub fn operator() -> Operator {
    Operator::new("embedded")
        .state(Seen::default())
        .on_create("greetings.v1.kopf.dev", |name: Name, seen: State<Seen>| async move {
            let count = seen.0.fetch_add(1, Ordering::Relaxed) + 1;
            println!("{name} is number {count}");
        })
        .timer("greetings.v1.kopf.dev", 60.secs(), |name: Name| async move {
            println!("{name} is still here");
        })
}

/// The other work of this program; here it only waits.
#[tokio::main]
async fn beside() -> Result {
    kopf::logging::Logging::default().install();
    let mut running = operator().start(Config::default()).await?;
    running.ready().await;
    println!("the operator runs beside us; press Ctrl-C to stop it");
    tokio::signal::ctrl_c().await?;
    running.stop().await?;
    Ok(())
}

fn main() -> ExitCode {
    // With arguments such as `run --embedded`, it works like any other operator.
    match std::env::args().len() {
        1 => beside().report(),
        _ => operator().main().report(),
    }
}
