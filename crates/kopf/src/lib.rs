//! Kubernetes operators in a few lines of Rust: the crate that users import.
