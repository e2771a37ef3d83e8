//! How faithful a server is: the same requests to two servers, recorded or live, and what differs.
//!
//! [`differential`] sends scripts and random requests to a real server and to another one; [`record`]
//! writes the answers of a real server to a file; [`replay`] compares a server with such a file. All
//! of them compare answers in [`normalise`]d form, with names and versions [`pairing`] up.

use tools_support::{http, kubeconfig};

pub mod differential;
pub mod normalise;
pub mod pairing;
pub mod record;
pub mod replay;
mod subject;
