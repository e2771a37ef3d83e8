//! The signals that end the program.
//!
//! Heard by a thread of their own: a handler that blocks the runtime must not make the program deaf.

use std::time::Duration;
use std::{io, process};

use kopf_cli::failure::Failure;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Tells the names of the signals that come from now on.
///
/// The process is ended so long after the second one, no matter what the rest of it does.
pub(super) fn hear(grace: Duration) -> io::Result<mpsc::UnboundedReceiver<&'static str>> {
    let (sender, heard) = mpsc::unbounded_channel();
    let (starter, started) = std::sync::mpsc::sync_channel(1);
    let hearing = move || match Ears::new() {
        Ok(ears) => {
            // The parent process waits for that.
            let _ = starter.send(Ok(()));
            ears.listen(&sender, grace);
        }
        Err(error) => {
            let _ = starter.send(Err(error));
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(hearing)?;
    started.recv().map_err(io::Error::other)??;
    Ok(heard)
}

struct Ears {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl Ears {
    fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (interrupt, terminate) = {
            let _entered = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        Ok(Self { runtime, interrupt, terminate })
    }

    fn listen(self, sender: &mpsc::UnboundedSender<&'static str>, grace: Duration) -> ! {
        let Self { runtime, mut interrupt, mut terminate } = self;
        runtime.block_on(async move {
            for _ in 0..2 {
                let name = tokio::select! {
                    _ = interrupt.recv() => "SIGINT",
                    _ = terminate.recv() => "SIGTERM",
                };
                // Nobody listens any more when the operator has ended: the process is about to.
                let _ = sender.send(name);
            }
            tokio::time::sleep(grace).await;
        });
        let failure = forced();
        // The standard error may be what is stuck.
        crate::logging::print_last(failure.render(), super::OUTPUT_GRACE);
        process::exit(failure.code().into())
    }
}

/// Why a program ends after two signals.
pub(super) fn forced() -> Failure {
    Failure::from("stopped by force: handlers were left unfinished")
}

#[cfg(test)]
mod tests;
