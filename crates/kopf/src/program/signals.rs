//! The signals that stop the program.
//!
//! A separate thread receives them: a handler that blocks the runtime must not block signals.

use std::time::Duration;
use std::{io, process};

use kopf_cli::failure::Failure;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Returns a channel with the names of the signals received from now on.
///
/// The process exits this long after the second signal, whatever its other threads do.
pub(super) fn receive(grace: Duration) -> io::Result<mpsc::UnboundedReceiver<&'static str>> {
    let (sender, heard) = mpsc::unbounded_channel();
    let (starter, started) = std::sync::mpsc::sync_channel(1);
    let hearing = move || match SignalListener::new() {
        Ok(ears) => {
            // The parent process waits for this.
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

struct SignalListener {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl SignalListener {
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
                // The receiver is gone if the operator has ended; the process is about to exit.
                let _ = sender.send(name);
            }
            tokio::time::sleep(grace).await;
        });
        let failure = forced();
        // The blocked thread may be the one that writes to standard error.
        crate::logging::print_last(failure.render(), super::OUTPUT_GRACE);
        process::exit(failure.code().into())
    }
}

/// The failure of a program that received two signals.
pub(super) fn forced() -> Failure {
    Failure::from("stopped by force: handlers were left unfinished")
}

#[cfg(test)]
mod tests;
