//! The server through its public doors, with the real `kube` client.

mod client;
mod goldens;
mod toolkit;
mod watch_checker;
