//! Logs once that the API server cannot be reached, and once that it responds again.
//!
//! Meanwhile every watch and every request fails, all for the same reason.

use std::error::Error;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::transport_error::chain;

/// Since when the server is unreachable, if it is; written by all requests.
#[derive(Default)]
pub(crate) struct Reach(Mutex<Option<Instant>>);

impl Reach {
    /// The server at this address was not reached.
    pub(crate) fn lost(&self, address: Option<&str>, error: &(dyn Error + 'static)) {
        let mut since = self.0.lock();
        if since.is_some() {
            return;
        }
        *since = Some(Instant::now());
        let (place, reason) = (place(address), innermost(error));
        tracing::warn!(
            target: "kopf.requests",
            "{place} cannot be reached: {reason}. Check that it is running, and that the \
             kubeconfig in use has its address (`kubectl cluster-info` shows it). \
             Trying again until it answers."
        );
    }

    /// The server at this address has responded.
    pub(crate) fn found(&self, address: Option<&str>) {
        let Some(since) = self.0.lock().take() else { return };
        let (place, seconds) = (place(address), since.elapsed().as_secs());
        tracing::info!(target: "kopf.requests", "{place} responds again after {seconds} s.");
    }
}

fn place(address: Option<&str>) -> String {
    match address {
        Some(address) => format!("The API server at {}", address.trim_end_matches('/')),
        None => "The API server".to_owned(),
    }
}

fn innermost(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}
