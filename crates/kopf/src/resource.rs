//! Resources of the cluster, and selectors that name them.

pub use kopf_model::resource::{Resource, Selector, SelectorName};
