//! The server through its public doors, with the real `kube` client.

mod admission;
mod client;
mod controllers;
mod goldens;
mod kubectl;
mod rbac;
mod toolkit;
mod watch_checker;
