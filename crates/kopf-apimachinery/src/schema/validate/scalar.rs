//! Checks of scalars: strings, formats, numbers and enumerations.

use serde_json::{Number, Value};

use super::{Node, Outcome};
use crate::go_print::{go_syntax, quoted};
use crate::schema::formats;
use crate::schema::ir::Schema;
use crate::schema::patterns::fits;
use crate::{FieldError, FieldErrorReason};

impl Node<'_> {
    pub(super) fn check_string(&self, schema: &Schema, text: &str, outcome: &mut Outcome) {
        outcome.matched += 1;
        let length = text.chars().count() as i64;
        if let Some(max) = schema.max_length.filter(|max| length > *max) {
            let words = format!("{} in body should be at most {max} chars long", self.path());
            let max = usize::try_from(max).unwrap_or_default();
            outcome.add(FieldError::too_long(self.field(), max), words);
            return;
        }
        if let Some(min) = schema.min_length.filter(|min| length < *min) {
            let detail = format!("should be at least {min} chars long");
            self.invalid(outcome, &Value::from(text), &detail);
            return;
        }
        let Some(pattern) = &schema.pattern else { return };
        match fits(pattern, text) {
            Some(true) => {}
            Some(false) => {
                self.invalid(outcome, &Value::from(text), &format!("should match '{pattern}'"));
            }
            None => {
                let detail = format!("should match '{pattern}, but pattern is invalid'");
                self.invalid(outcome, &Value::from(text), &detail);
            }
        }
    }

    pub(super) fn check_format(&self, schema: &Schema, text: &str, outcome: &mut Outcome) {
        let Some(format) = schema.format.as_deref().filter(|name| formats::is_supported(name))
        else {
            return;
        };
        outcome.matched += 1;
        if formats::matches(format, text) {
            return;
        }
        let words = format!("{} in body must be of type {format}: {}", self.path(), quoted(text));
        let value = Value::from(text);
        outcome.add(FieldError::type_invalid(self.field(), &value, &words), words);
    }

    pub(super) fn check_number(&self, schema: &Schema, number: &Number, outcome: &mut Outcome) {
        outcome.matched += 1;
        let value = Value::Number(number.clone());
        let bound = |bound: &Option<Number>| bound.as_ref().map(|bound| bound_for(number, bound));
        if let Some(factor) = &bound(&schema.multiple_of) {
            if factor.as_f64().is_some_and(|factor| factor <= 0.0) {
                let (path, shown) = (self.path(), shown(factor));
                let text =
                    format!("factor MultipleOf declared for {path} must be positive: {shown}");
                let factor = Value::Number(factor.clone());
                outcome.add(FieldError::invalid(self.field(), &factor, &text), text);
            } else if !is_multiple(number, factor) {
                let detail = format!("should be a multiple of {}", shown(factor));
                self.invalid(outcome, &value, &detail);
            }
        }
        if let Some(minimum) = &bound(&schema.minimum) {
            let (below, words) = match schema.exclusive_minimum {
                true => (compare(number, minimum).is_le(), "should be greater than"),
                false => (compare(number, minimum).is_lt(), "should be greater than or equal to"),
            };
            if below {
                self.invalid(outcome, &value, &format!("{words} {}", shown(minimum)));
            }
        }
        if let Some(maximum) = &bound(&schema.maximum) {
            let (above, words) = match schema.exclusive_maximum {
                true => (compare(number, maximum).is_ge(), "should be less than"),
                false => (compare(number, maximum).is_gt(), "should be less than or equal to"),
            };
            if above {
                self.invalid(outcome, &value, &format!("{words} {}", shown(maximum)));
            }
        }
    }

    pub(super) fn check_enumeration(&self, schema: &Schema, value: &Value, outcome: &mut Outcome) {
        let Some(allowed) = schema.enumeration.as_ref().filter(|allowed| !allowed.is_empty())
        else {
            return;
        };
        if allowed.iter().any(|candidate| equal(candidate, value)) {
            return;
        }
        let listed: Vec<String> = allowed
            .iter()
            .map(|candidate| match candidate {
                Value::String(text) => quoted(text),
                other => quoted(&other.to_string()),
            })
            .collect();
        let shown = match value {
            Value::String(text) => quoted(text),
            Value::Null => "\"null\"".to_owned(),
            other => go_syntax(other),
        };
        let listed = listed.join(", ");
        let message = format!("Unsupported value: {shown}: supported values: {listed}");
        let error = FieldError::new(FieldErrorReason::NotSupported, self.field(), message);
        outcome.add(error, format!("{} in body should be one of {listed}", self.path()));
    }
}

fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other).is_eq(),
        _ => one == other,
    }
}

fn compare(one: &Number, other: &Number) -> std::cmp::Ordering {
    if let (Some(one), Some(other)) = (one.as_i64(), other.as_i64()) {
        return one.cmp(&other);
    }
    let (one, other) = (one.as_f64().unwrap_or_default(), other.as_f64().unwrap_or_default());
    one.partial_cmp(&other).unwrap_or(std::cmp::Ordering::Equal)
}

fn is_multiple(number: &Number, factor: &Number) -> bool {
    if let (Some(number), Some(factor)) = (number.as_i64(), factor.as_i64())
        && factor > 0
    {
        return number % factor == 0;
    }
    let (number, factor) =
        (number.as_f64().unwrap_or_default(), factor.as_f64().unwrap_or_default());
    let times = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
    factor > 0.0 && (times - times.round()).abs() < 1e-9
}

/// Upstream compares integers with integers: the fraction of a bound is truncated.
fn bound_for(number: &Number, bound: &Number) -> Number {
    match bound.as_f64() {
        Some(float) if !number.is_f64() && bound.is_f64() => Number::from(float as i64),
        _ => bound.clone(),
    }
}

fn shown(number: &Number) -> String {
    go_syntax(&Value::Number(number.clone()))
}
