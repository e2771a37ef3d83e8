//! The built-in controllers, as ordinary clients of the server.
//!
//! Started by the server on its first request; they end when the server's last handle is dropped.

use crate::local::LocalClient;

/// Starts every controller as tokio tasks; dropping the result ends them.
pub(crate) fn start(_client: &LocalClient) -> Running {
    Running { _tasks: tokio::task::JoinSet::new() }
}

/// The running controllers of one server.
pub(crate) struct Running {
    // Aborts the tasks on drop.
    _tasks: tokio::task::JoinSet<()>,
}
