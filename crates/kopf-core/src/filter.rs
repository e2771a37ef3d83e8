//! The conditions of handlers on objects, and whether they hold.
//!
//! Checked in a fixed order: labels, annotations, the field's value, its change, and finally the
//! function over everything. User functions are called only if all conditions before them hold.

mod mismatch;

use std::sync::Arc;

use kopf_model::equality::equal;
use kopf_model::{CallbackError, Essence, FieldPath};
use serde_json::Value;

use crate::occasion::{Change, Occasion, Subject};

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

/// What a condition says: whether it holds, or why it cannot tell.
pub type FilterResult = Result<bool, CallbackError>;

/// A condition on the whole object and what happened to it.
pub type When = Arc<dyn Fn(&Subject, &Occasion) -> FilterResult + Send + Sync>;

/// A function of a label or annotation (`None` if absent) and the same data as for [`When`].
pub type MetaFn = Arc<dyn Fn(Option<&str>, &Subject, &Occasion) -> FilterResult + Send + Sync>;

/// A function of a field (`None` if absent) and the same data as for [`When`].
pub type ValueFn = Arc<dyn Fn(Option<&Value>, &Subject, &Occasion) -> FilterResult + Send + Sync>;

/// A condition on one label or annotation.
#[derive(Clone)]
pub enum MetaFilter {
    /// Has exactly this value.
    Equals(String),
    /// Has any value.
    Present,
    /// Is absent.
    Absent,
    /// Is accepted by the function, which gets `None` if the key is absent.
    Matches(MetaFn),
}

/// A condition on the value of a field.
#[derive(Clone)]
pub enum ValueFilter {
    /// Equals this value.
    Equals(Value),
    /// Has any value.
    Present,
    /// Is absent.
    Absent,
    /// Is accepted by the function, which gets `None` if the field is absent.
    Matches(ValueFn),
}

/// Which conditions are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// All except the conditions on a change: whether the handler could ever apply to this object.
    Ever,
    /// All, including the conditions on a change.
    Now {
        /// Whether the field of interest must have changed.
        field_needs_change: bool,
    },
}

impl Filters {
    /// Whether all conditions hold.
    ///
    /// # Errors
    /// Fails when a function of a user does; none is called after it.
    pub fn match_with(
        &self,
        subject: &Subject,
        occasion: &Occasion,
        matching: Matching,
    ) -> FilterResult {
        if !self.match_metadata(subject, occasion)? || !self.match_value(subject, occasion)? {
            return Ok(false);
        }
        if let Matching::Now { field_needs_change } = matching
            && !self.match_change(subject, occasion, field_needs_change)?
        {
            return Ok(false);
        }
        self.when.as_ref().map_or(Ok(true), |when| when(subject, occasion))
    }

    fn match_metadata(&self, subject: &Subject, occasion: &Occasion) -> FilterResult {
        let object = &subject.object;
        for (key, filter) in &self.labels {
            if !filter.matches(object.label(key), subject, occasion)? {
                return Ok(false);
            }
        }
        for (key, filter) in &self.annotations {
            if !filter.matches(object.annotation(key), subject, occasion)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn match_value(&self, subject: &Subject, occasion: &Occasion) -> FilterResult {
        let Some(field) = &self.field else { return Ok(true) };
        let filter = self.value.as_ref().unwrap_or(&ValueFilter::Present);
        match occasion {
            // The new value is checked first, so that functions get the old one only if needed.
            Occasion::Change(change) => {
                let (old, new) = sides(change, field);
                Ok(filter.matches(new, subject, occasion)?
                    || filter.matches(old, subject, occasion)?)
            }
            _ => filter.matches(subject.object.get(field), subject, occasion),
        }
    }

    fn match_change(
        &self,
        subject: &Subject,
        occasion: &Occasion,
        needs_change: bool,
    ) -> FilterResult {
        let (Some(field), Occasion::Change(change)) = (&self.field, occasion) else {
            return Ok(true);
        };
        let (old, new) = sides(change, field);
        if needs_change && !differ(old, new) {
            return Ok(false);
        }
        for (filter, value) in [(&self.old, old), (&self.new, new)] {
            if let Some(filter) = filter
                && !filter.matches(value, subject, occasion)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl MetaFilter {
    /// Whether a label or annotation meets the condition.
    ///
    /// # Errors
    /// Fails when the function does.
    pub fn matches(
        &self,
        value: Option<&str>,
        subject: &Subject,
        occasion: &Occasion,
    ) -> FilterResult {
        match self {
            Self::Equals(expected) => Ok(value == Some(expected.as_str())),
            Self::Present => Ok(value.is_some()),
            Self::Absent => Ok(value.is_none()),
            Self::Matches(accepts) => accepts(value, subject, occasion),
        }
    }
}

impl ValueFilter {
    /// Whether a field's value meets the condition.
    ///
    /// # Errors
    /// Fails when the function does.
    pub fn matches(
        &self,
        value: Option<&Value>,
        subject: &Subject,
        occasion: &Occasion,
    ) -> FilterResult {
        match self {
            Self::Equals(expected) => Ok(value.is_some_and(|value| equal(value, expected))),
            Self::Present => Ok(value.is_some()),
            Self::Absent => Ok(value.is_none()),
            Self::Matches(accepts) => accepts(value, subject, occasion),
        }
    }
}

fn sides<'a>(change: &'a Change, field: &FieldPath) -> (Option<&'a Value>, Option<&'a Value>) {
    let resolve = |side: &'a Option<Essence>| side.as_ref().and_then(|side| field.resolve(side));
    (resolve(&change.old), resolve(&change.new))
}

/// Whether a field has changed; an absent field differs from any value.
fn differ(old: Option<&Value>, new: Option<&Value>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => !equal(old, new),
        (old, new) => old.is_some() != new.is_some(),
    }
}

#[cfg(test)]
mod tests;
