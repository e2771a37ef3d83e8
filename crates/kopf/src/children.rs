//! Objects that belong to another object, their owner.
//!
//! A [`Child`] is what `#[kopf::on::desired]` returns. [`Children`] is a parameter: the children of
//! one kind that exist. [`Owner`] is a parameter that adopts and applies children.

pub use kopf_handler::{Child, Children, Owner};
