//! Typed Rust handlers: parameters, outcomes, and adaptors from functions to Invoke.
