//! The conditions under which a handler concerns an object.

use std::sync::Arc;

use kopf_model::FieldPath;
use serde_json::Value;

use crate::occasion::{Occasion, Subject};

/// All conditions of one handler; every given one must hold.
#[derive(Clone, Default)]
pub struct Filters {
    /// Conditions on labels.
    pub labels: Vec<(String, MetaFilter)>,
    /// Conditions on annotations.
    pub annotations: Vec<(String, MetaFilter)>,
    /// The field of interest.
    pub field: Option<FieldPath>,
    /// A condition on the field, before or after the change.
    pub value: Option<ValueFilter>,
    /// A condition on the field before the change.
    pub old: Option<ValueFilter>,
    /// A condition on the field after the change.
    pub new: Option<ValueFilter>,
    /// A condition on the whole object.
    pub when: Option<When>,
}

/// A condition on the whole object and what happened to it.
pub type When = Arc<dyn Fn(&Subject, &Occasion) -> bool + Send + Sync>;

/// A condition on one label or annotation.
#[derive(Clone)]
pub enum MetaFilter {
    /// Has exactly this value.
    Equals(String),
    /// Has any value.
    Present,
    /// Is not there.
    Absent,
    /// Whatever the function accepts; gets none when the key is absent.
    Matches(Arc<dyn Fn(Option<&str>, &Subject) -> bool + Send + Sync>),
}

/// A condition on the value of a field.
#[derive(Clone)]
pub enum ValueFilter {
    /// Equals this value.
    Equals(Value),
    /// Has any value.
    Present,
    /// Is not there.
    Absent,
    /// Whatever the function accepts; gets none when the field is absent.
    Matches(Arc<dyn Fn(Option<&Value>, &Subject) -> bool + Send + Sync>),
}
