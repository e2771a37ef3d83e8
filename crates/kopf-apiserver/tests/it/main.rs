//! Tests of the server through its public API, with the real `kube` client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should panic")]

mod access;
mod admission;
mod applying;
mod auditing;
mod client;
mod controller_events;
mod controllers;
mod conversion;
mod crash;
mod defaults;
mod durability;
mod fidelity;
mod flow_control;
mod foos;
mod fuzz;
mod goldens;
mod identity;
mod json_patches;
mod kubectl;
mod limits;
mod mutations;
mod overload;
mod plugins;
mod policies;
mod rbac;
mod runtime;
mod runtime_classes;
mod scales;
mod status;
mod terminating;
mod toolkit;
mod watch_checker;
mod websockets;
