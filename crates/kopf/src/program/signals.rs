//! The signals that end the program.
//!
//! Heard by a thread of their own: a handler that blocks the runtime must not make the program deaf.

use std::process;
use std::time::Duration;

use kopf_cli::failure::Failure;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Tells the names of the signals that come from now on.
///
/// The process is ended so long after the second one, whatever the rest of it does.
pub(super) fn hear(grace: Duration) -> std::io::Result<mpsc::UnboundedReceiver<&'static str>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    drop(entered);
    let (sender, heard) = mpsc::unbounded_channel();
    let hearing = async move {
        for _ in 0..2 {
            let name = tokio::select! {
                _ = interrupt.recv() => "SIGINT",
                _ = terminate.recv() => "SIGTERM",
            };
            // Nobody listens any more when the operator has ended: the process is about to.
            let _ = sender.send(name);
        }
        tokio::time::sleep(grace).await;
        let failure = forced();
        eprint!("{}", failure.render());
        process::exit(failure.code().into());
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || runtime.block_on(hearing))?;
    Ok(heard)
}

/// Why a program ends that was told to stop twice.
pub(super) fn forced() -> Failure {
    Failure::from("stopped by force: handlers were left unfinished")
}

#[cfg(test)]
mod tests;
