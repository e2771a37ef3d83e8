//! Explains to users why a handler does not apply to an object.
//!
//! Considers only conditions that are plain values: user functions are never called for this.

use kopf_model::equality::equal;
use serde_json::Value;

use super::{Filters, Matching, MetaFilter, ValueFilter, differ, sides};
use crate::occasion::{Occasion, Subject};

/// Longer values are truncated.
const SHOWN_MAX: usize = 60;

impl Filters {
    /// The first condition that does not hold, not counting functions.
    ///
    /// `None` if all plain conditions hold: if the handler is not selected, one of its functions
    /// has rejected the object.
    #[must_use]
    pub fn mismatch(
        &self,
        subject: &Subject,
        occasion: &Occasion,
        matching: Matching,
    ) -> Option<String> {
        let object = &subject.object;
        let label = |(key, filter): &(String, MetaFilter)| {
            filter.complaint(object.label(key)).map(|words| format!("the label {key} {words}"))
        };
        let annotation = |(key, filter): &(String, MetaFilter)| {
            filter
                .complaint(object.annotation(key))
                .map(|words| format!("the annotation {key} {words}"))
        };
        self.labels
            .iter()
            .find_map(label)
            .or_else(|| self.annotations.iter().find_map(annotation))
            .or_else(|| self.value_mismatch(subject, occasion))
            .or_else(|| match matching {
                Matching::Ever => None,
                Matching::Now { field_needs_change } => {
                    self.change_mismatch(occasion, field_needs_change)
                }
            })
    }

    fn value_mismatch(&self, subject: &Subject, occasion: &Occasion) -> Option<String> {
        let field = self.field.as_ref()?;
        let filter = self.value.as_ref().unwrap_or(&ValueFilter::Present);
        let words = match occasion {
            Occasion::Change(change) => {
                let (old, new) = sides(change, field);
                filter.complaint(old).and(filter.complaint(new))
            }
            _ => filter.complaint(subject.object.get(field)),
        };
        words.map(|words| format!("the field {field} {words}"))
    }

    fn change_mismatch(&self, occasion: &Occasion, needs_change: bool) -> Option<String> {
        let (Some(field), Occasion::Change(change)) = (&self.field, occasion) else { return None };
        let (old, new) = sides(change, field);
        if needs_change && !differ(old, new) {
            return Some(format!("the field {field} has not changed"));
        }
        let of = |filter: &Option<ValueFilter>, value| filter.as_ref()?.complaint(value);
        of(&self.old, old)
            .map(|words| format!("the old value of {field} {words}"))
            .or_else(|| of(&self.new, new).map(|words| format!("the field {field} {words}")))
    }
}

impl MetaFilter {
    fn complaint(&self, value: Option<&str>) -> Option<String> {
        match (self, value) {
            (Self::Equals(wanted), Some(value)) if value != wanted => {
                Some(format!("is `{value}`, not `{wanted}`"))
            }
            (Self::Equals(_) | Self::Present, None) => Some("is missing".to_owned()),
            (Self::Absent, Some(_)) => Some("is present".to_owned()),
            _ => None,
        }
    }
}

impl ValueFilter {
    fn complaint(&self, value: Option<&Value>) -> Option<String> {
        match (self, value) {
            (Self::Equals(wanted), Some(value)) if !equal(value, wanted) => {
                Some(format!("is {}, not {}", shown(value), shown(wanted)))
            }
            (Self::Equals(_) | Self::Present, None) => Some("is missing".to_owned()),
            (Self::Absent, Some(_)) => Some("is present".to_owned()),
            _ => None,
        }
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
