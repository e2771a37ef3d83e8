//! A sequence of requests as data: read from YAML, or made by `random`.
//!
//! Pure. Owns the words a script may use and how variables are filled in;
//! sends nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::Request;

/// Values that steps saved, plus `ns`, which the runner provides.
pub(crate) type Variables = BTreeMap<String, String>;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) about: String,
    pub(crate) steps: Vec<Step>,
}

impl Script {
    /// Paths of the namespaced objects that steps name, without repetition.
    pub(crate) fn objects(&self) -> BTreeSet<String> {
        let object = |step: &Step| {
            let path = step.path.split('?').next()?;
            let (prefix, rest) = path.split_once("/namespaces/${ns}/")?;
            let (plural, name) = rest.split_once('/')?;
            let name = name.split('/').next()?;
            Some(format!("{prefix}/namespaces/${{ns}}/{plural}/{name}"))
        };
        self.steps.iter().filter_map(object).collect()
    }
}

/// One request, or the end of a watch that an earlier step opened.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Step {
    /// An HTTP method, `WATCH` (read to the end) or `COLLECT` (see `open`).
    pub(crate) method: String,
    pub(crate) path: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Content>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, String>,
    /// A string is sent as it is, anything else as JSON.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(crate) body: Value,
    /// Variables to set from the answer: name to JSON pointer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) save: BTreeMap<String, String>,
    /// Repeat until the answer looks so; only the last one is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wait: Option<Wait>,
    /// For `WATCH`: go on in the background under this name.
    /// For `COLLECT`: which watch to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) open: Option<String>,
    /// For `COLLECT`: the name of the object whose event is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<String>,
    /// JSON pointers that are not compared; say why beside them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignore: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Content {
    Json,
    Merge,
    Strategic,
    Apply,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Wait {
    pub(crate) status: Option<u16>,
    /// Text that the body must contain.
    pub(crate) has: Option<String>,
    /// Texts that the body must not contain.
    pub(crate) lacks: Vec<String>,
}

impl Wait {
    pub(crate) fn is_met(&self, status: u16, body: &str) -> bool {
        self.status.is_none_or(|wanted| wanted == status)
            && self.has.as_ref().is_none_or(|text| body.contains(text.as_str()))
            && !self.lacks.iter().any(|text| body.contains(text.as_str()))
    }
}

impl Step {
    pub(crate) fn new(method: &str, path: impl Into<String>) -> Self {
        Self { method: method.to_owned(), path: path.into(), ..Self::default() }
    }

    pub(crate) fn with_body(mut self, body: Value) -> Self {
        self.body = body;
        self
    }

    pub(crate) fn patch(content: Content, path: impl Into<String>, body: Value) -> Self {
        Self { content: Some(content), body, ..Self::new("PATCH", path) }
    }

    pub(crate) fn saving(mut self, name: &str, pointer: &str) -> Self {
        self.save.insert(name.to_owned(), pointer.to_owned());
        self
    }

    pub(crate) fn waiting(mut self, wait: Wait) -> Self {
        self.wait = Some(wait);
        self
    }

    /// The request of this step, with its variables filled in.
    pub(crate) fn request(&self, variables: &Variables) -> Request {
        let method = if self.method == "WATCH" { "GET" } else { &self.method };
        let body = match &self.body {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            value => Some(value.to_string()),
        };
        Request {
            method: method.to_owned(),
            path: watch_path(&self.method, &fill(&self.path, variables)),
            headers: self.all_headers().into_iter().collect(),
            body: body.map(|body| Bytes::from(fill(&body, variables))),
        }
    }

    /// Explicit headers over the defaults; an empty value is not sent at all.
    pub(crate) fn all_headers(&self) -> BTreeMap<String, String> {
        let mut headers = BTreeMap::from([("Accept".to_owned(), "application/json".to_owned())]);
        if !self.body.is_null() {
            let content = match self.content {
                None => "application/json",
                Some(Content::Json) => "application/json-patch+json",
                Some(Content::Merge) => "application/merge-patch+json",
                Some(Content::Strategic) => "application/strategic-merge-patch+json",
                Some(Content::Apply) => "application/apply-patch+yaml",
            };
            headers.insert("Content-Type".to_owned(), content.to_owned());
        }
        headers.extend(self.headers.clone());
        headers
    }
}

/// Reads one script, or all `.yaml` scripts of a folder in order of name.
pub(crate) fn read_all(path: &Path) -> Result<Vec<Script>> {
    if path.is_file() {
        return Ok(vec![read(path)?]);
    }
    let mut files: Vec<_> = std::fs::read_dir(path)
        .with_context(|| format!("could not list `{}`", path.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files.iter().map(|file| read(file)).collect()
}

fn read(path: &Path) -> Result<Script> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("could not read `{}`", path.display()))?;
    serde_norway::from_str(&text).with_context(|| format!("in `{}`", path.display()))
}

/// Replaces `${name}` by the variable's value; unknown ones become `unset`.
pub(crate) fn fill(text: &str, variables: &Variables) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, tail) = after.split_once('}').unwrap_or((after, ""));
        result.push_str(before);
        result.push_str(variables.get(name).map_or("unset", String::as_str));
        rest = tail;
    }
    result + rest
}

/// A `WATCH` is a list with a parameter, unless the path says so already.
pub(crate) fn watch_path(method: &str, path: &str) -> String {
    if method != "WATCH" || path.contains("/watch/") || path.contains("watch=") {
        return path.to_owned();
    }
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{path}{separator}watch=true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_everywhere() {
        let variables = Variables::from([("ns".to_owned(), "d-1".to_owned())]);
        assert_eq!(fill("/a/${ns}/b/${other}", &variables), "/a/d-1/b/unset");
    }

    #[test]
    fn objects_are_named_once() {
        let steps = ["/api/v1/namespaces/${ns}/pods", "/api/v1/namespaces/${ns}/pods/p/status?x=1"]
            .map(|path| Step::new("GET", path));
        let script = Script { name: String::new(), about: String::new(), steps: steps.to_vec() };
        let objects: Vec<String> = script.objects().into_iter().collect();
        assert_eq!(objects, ["/api/v1/namespaces/${ns}/pods/p"]);
    }

    #[test]
    fn a_watch_is_a_get_with_a_parameter() {
        let request = Step::new("WATCH", "/x?timeoutSeconds=1").request(&Variables::new());
        assert_eq!(request.method, "GET");
        assert_eq!(request.path, "/x?timeoutSeconds=1&watch=true");
    }

    #[test]
    fn every_shipped_script_can_be_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
        assert!(!read_all(&folder).unwrap().is_empty());
    }
}
