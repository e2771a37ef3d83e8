//! Measures the fidelity of a server: sends the same requests to two servers and compares them.
//!
//! [`differential`] sends scripts and random requests to a real server and to another one;
//! [`record`] writes the responses of a real server to a file; [`replay`] compares a server with
//! such a file. All of them compare [`normalise`]d responses, with [`pairing`] of names and
//! versions.

use tools_support::{http, kubeconfig};

pub mod differential;
pub mod normalise;
pub mod pairing;
pub mod record;
pub mod replay;
mod subject;
