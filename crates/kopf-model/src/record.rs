//! The progress of one handler on one object, as stored on the object.
//!
//! Field names, their order and the time format are Kopf's, so that either engine can continue the
//! work of the other.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::temporal::DateTimePrinter;
use jiff::tz::{Offset, TimeZone};
use serde_json::{Map, Value};

/// The stored progress of a handler between its attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgressRecord {
    /// When the handler was first considered.
    pub started: Option<Timestamp>,
    /// When it reached its final outcome.
    pub stopped: Option<Timestamp>,
    /// The handler must not run before this time.
    pub delayed: Option<Timestamp>,
    /// The reason why it was called: `create`, `update`, `delete`, `resume`.
    pub purpose: Option<Cow<'static, str>>,
    /// How many attempts are finished.
    pub retries: u32,
    /// Whether it has succeeded.
    pub success: bool,
    /// Whether it has failed permanently.
    pub failure: bool,
    /// The text of the last error.
    pub message: Option<String>,
    /// The ids of all its sub-handlers at any depth, sorted.
    pub subrefs: Vec<String>,
    /// The stored form of the state for which it has finished, see
    /// [`HandledState`](crate::handled::HandledState). Not one of Kopf's fields.
    pub handled: Option<Value>,
}

/// How absent fields are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// They are left out.
    Omitted,
    /// They are written as null.
    Null,
}

impl ProgressRecord {
    /// Whether there is a final outcome.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.success || self.failure
    }

    /// The record in its stored form.
    #[must_use]
    pub fn to_value(&self, absent: Absent) -> Value {
        let time = |moment: Option<Timestamp>| moment.map(|moment| format_time(moment).into());
        let subrefs = (!self.subrefs.is_empty()).then(|| self.subrefs.clone().into());
        let fields: [(&str, Option<Value>); 9] = [
            ("started", time(self.started)),
            ("stopped", time(self.stopped)),
            ("delayed", time(self.delayed)),
            ("purpose", self.purpose.as_deref().map(Value::from)),
            ("retries", Some(self.retries.into())),
            ("success", Some(self.success.into())),
            ("failure", Some(self.failure.into())),
            ("message", self.message.clone().map(Value::String)),
            ("subrefs", subrefs),
        ];
        let mut record = Map::new();
        for (name, value) in fields {
            match (value, absent) {
                (Some(value), _) => record.insert(name.to_owned(), value),
                (None, Absent::Null) => record.insert(name.to_owned(), Value::Null),
                (None, Absent::Omitted) => None,
            };
        }
        if let Some(handled) = &self.handled {
            record.insert("handled".to_owned(), handled.clone());
        }
        Value::Object(record)
    }

    /// Reads a stored record; missing and unusual fields get defaults, unknown ones are ignored.
    #[must_use]
    pub fn from_value(record: &Value) -> Self {
        let text = |name: &str| record.get(name).and_then(Value::as_str).filter(|s| !s.is_empty());
        let time = |name: &str| text(name).and_then(parse_time);
        let flag = |name: &str| record.get(name).and_then(Value::as_bool).unwrap_or(false);
        let retries = record.get("retries").and_then(Value::as_u64).unwrap_or(0);
        let subrefs = record.get("subrefs").and_then(Value::as_array);
        let mut subrefs: Vec<String> = subrefs
            .map(|ids| ids.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            .unwrap_or_default();
        subrefs.sort();
        Self {
            started: time("started"),
            stopped: time("stopped"),
            delayed: time("delayed"),
            purpose: text("purpose").map(|it| it.to_owned().into()),
            retries: u32::try_from(retries).unwrap_or(u32::MAX),
            success: flag("success"),
            failure: flag("failure"),
            message: record.get("message").and_then(Value::as_str).map(str::to_owned),
            subrefs,
            handled: record.get("handled").filter(|handled| handled.is_array()).cloned(),
        }
    }
}

/// Formats a time in UTC with six fractional digits and the explicit offset `+00:00`.
#[must_use]
pub fn format_time(moment: Timestamp) -> String {
    const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));
    PRINTER.timestamp_with_offset_to_string(&moment, Offset::UTC)
}

/// Parses a time in ISO 8601; without an offset it is UTC, as in old releases.
#[must_use]
pub fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let naive: DateTime = text.parse().ok()?;
        naive.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })
}

#[cfg(test)]
mod tests;
