//! One request of a page: its path, its parameters and its body.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::response::ApiError;

/// A request of a page.
pub(crate) struct PageRequest {
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    /// Null for requests that change nothing.
    pub(crate) body: Value,
}

impl PageRequest {
    /// Creates it from the parts of an HTTP request.
    pub(crate) fn new(path: &str, query: Option<&str>, body: Value) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let query = pairs.map(|(key, value)| (decode(key), decode(value))).collect();
        Self { path: path.to_owned(), query, body }
    }

    /// An optional parameter; an empty one counts as absent.
    pub(crate) fn optional(&self, key: &str) -> Option<&str> {
        let given = self.query.get(key).map(String::as_str).or_else(|| self.body[key].as_str());
        given.filter(|value| !value.is_empty())
    }

    /// A required parameter.
    pub(crate) fn required(&self, key: &str) -> Result<&str, ApiError> {
        self.optional(key).ok_or_else(|| ApiError::BadRequest(format!("`{key}` is missing")))
    }

    /// A segment of a path in the cluster's API; rejects anything that would lead elsewhere.
    pub(crate) fn name(&self, key: &str) -> Result<&str, ApiError> {
        is_name(self.required(key)?, key)
    }

    /// The same, but optional.
    pub(crate) fn optional_name(&self, key: &str) -> Result<Option<&str>, ApiError> {
        self.optional(key).map(|value| is_name(value, key)).transpose()
    }

    /// A number; zero if absent.
    pub(crate) fn number<T: std::str::FromStr + Default>(&self, key: &str) -> T {
        self.optional(key).and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

fn is_name<'a>(value: &'a str, key: &str) -> Result<&'a str, ApiError> {
    let is_fine = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | '_' | ':');
    if value.chars().all(is_fine) && value != "." && value != ".." {
        return Ok(value);
    }
    Err(ApiError::BadRequest(format!("`{key}` is no name")))
}

/// Percent-decodes a parameter; malformed ones stay unchanged.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, others)) = rest.split_first() {
        let digits = others.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match (first, digits.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            (b'+', _) => {
                bytes.push(b' ');
                rest = others;
            }
            _ => {
                bytes.push(first);
                rest = others;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
