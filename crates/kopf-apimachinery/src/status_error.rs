//! Errors as Kubernetes reports them: the `Status` object.
//!
//! Responsible for the structure and the messages of upstream's `apierrors` package. Everything in
//! the pipeline that can fail returns a [`StatusError`].

use serde_json::{Value, json};

use crate::{Cause, FieldError};

/// A failed request, in the form of its response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatusError {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, empty when upstream gives none.
    pub reason: String,
    /// The human-readable message.
    pub message: String,
    /// The subject of the failure; boxed, since most results are successes.
    pub details: Option<Box<Details>>,
    /// The token to continue a list whose snapshot has expired.
    pub continue_token: Option<Box<str>>,
}

/// The subject of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Details {
    /// The name of the object.
    pub name: String,
    /// The API group of the object.
    pub group: String,
    /// The resource (or, for 422, the kind) of the object.
    pub kind: String,
    /// The uid of the object.
    pub uid: String,
    /// The individual problems.
    pub causes: Vec<Cause>,
    /// The number of seconds to wait before a retry; 0 means no advice.
    pub retry_after_seconds: u32,
}

impl StatusError {
    /// An error without details.
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.to_owned(), message: message.into(), ..Self::default() }
    }

    /// 400 BadRequest.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 404 for a named object.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", qualified(resource, group)))
            .about(group, resource, name)
    }

    /// 409 AlreadyExists.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", qualified(resource, group));
        Self::new(409, "AlreadyExists", message).about(group, resource, name)
    }

    /// 409 Conflict: the operation cannot be fulfilled because of `problem`.
    pub fn conflict(group: &str, resource: &str, name: &str, problem: &str) -> Self {
        let resource_text = qualified(resource, group);
        let message =
            format!("Operation cannot be fulfilled on {resource_text} {name:?}: {problem}");
        Self::new(409, "Conflict", message).about(group, resource, name)
    }

    /// 403 Forbidden: `problem` ends the message.
    pub fn forbidden(group: &str, resource: &str, name: &str, problem: &str) -> Self {
        let resource_text = qualified(resource, group);
        let message = if name.is_empty() {
            format!("{resource_text} is forbidden: {problem}")
        } else {
            format!("{resource_text} {name:?} is forbidden: {problem}")
        };
        Self::new(403, "Forbidden", message).about(group, resource, name)
    }

    /// 422 Invalid with one cause per field error; details name the kind, not the resource.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        // The message contains each problem once, even if several checks found it. Addresses of
        // pointers differ each time.
        let mut texts: Vec<String> = Vec::with_capacity(errors.len());
        for text in errors.iter().map(FieldError::full_message) {
            if text.contains("(0xc000000000)") || !texts.contains(&text) {
                texts.push(text);
            }
        }
        let joined = match texts.as_slice() {
            [] => String::new(),
            [single] => single.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} {name:?} is invalid: {joined}", qualified(kind, group));
        let mut error = Self::new(422, "Invalid", message).about(group, kind, name);
        if let Some(details) = &mut error.details {
            details.causes = errors.iter().map(FieldError::to_cause).collect();
        }
        error
    }

    /// 405 for a verb that the resource does not have.
    pub fn method_not_supported(group: &str, resource: &str, verb: &str) -> Self {
        let message = match (resource, group) {
            ("", _) => "the server does not allow this method on the requested resource".into(),
            (_, "") => format!("{verb} is not supported on resources of kind {resource:?}"),
            _ => format!("{verb} is not supported on resources of kind \"{resource}.{group}\""),
        };
        Self::new(405, "MethodNotAllowed", message).about(group, resource, "")
    }

    /// 500 InternalError.
    pub fn internal(message: impl Into<String>) -> Self {
        let text = message.into();
        let mut error = Self::new(500, "InternalError", format!("Internal error occurred: {text}"));
        error.details = Some(Box::new(Details {
            causes: vec![Cause { message: text, ..Cause::default() }],
            ..Details::default()
        }));
        error
    }

    /// 410 Expired.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 401 Unauthorized.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// The same error with details that name an object.
    #[must_use]
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let details = self.details.get_or_insert_default();
        details.group = group.to_owned();
        details.kind = kind.to_owned();
        details.name = name.to_owned();
        self
    }

    /// The same error with one more cause.
    #[must_use]
    pub fn with_cause(mut self, cause: Cause) -> Self {
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    /// Whether this is a 404.
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// Whether this is a 409 with reason Conflict.
    pub fn is_conflict(&self) -> bool {
        self.code == 409 && self.reason == "Conflict"
    }

    /// Whether this is a 409 with reason AlreadyExists.
    pub fn is_already_exists(&self) -> bool {
        self.code == 409 && self.reason == "AlreadyExists"
    }

    /// The `Status` object of the response.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message,
        });
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = json!(token);
        }
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_value();
        }
        status["code"] = json!(self.code);
        status
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut details = serde_json::Map::new();
        for (key, text) in
            [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)]
        {
            if !text.is_empty() {
                details.insert(key.into(), json!(text));
            }
        }
        if !self.causes.is_empty() {
            let causes: Vec<Value> = self.causes.iter().map(Cause::to_value).collect();
            details.insert("causes".into(), Value::Array(causes));
        }
        if self.retry_after_seconds > 0 {
            details.insert("retryAfterSeconds".into(), json!(self.retry_after_seconds));
        }
        Value::Object(details)
    }
}

impl std::fmt::Display for StatusError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for StatusError {}

/// `resource.group`, or the bare resource in the core group.
pub fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}
