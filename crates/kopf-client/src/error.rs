//! Failures of requests, in the classes that callers need for decisions.
//!
//! Knows the server's `Status` responses, but not how callers react to a failure.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use serde::Deserialize;

use crate::transport_error::{is_certificate_rejected, is_unreached};

mod forbidden;

/// The maximum length of a textual response that is kept for messages.
const MESSAGE_MAX: usize = 256;

/// The longest pause that a server may request. Overloaded servers request seconds; longer requests
/// (a proxy's page, a broken clock) must not stop all writes for a day.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(300);

/// A request that did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("{method} {path} failed: {message}")]
pub struct RequestError {
    /// The class of the failure.
    pub failure: Failure,
    /// The HTTP method.
    pub method: Method,
    /// The path with the query.
    pub path: Box<str>,
    /// The message of the server, or the local error.
    pub message: Box<str>,
    /// The server's `reason`, such as `AlreadyExists`.
    pub reason: Option<Box<str>>,
    /// How long the server asks us to wait.
    pub retry_after: Option<Duration>,
    /// Whether the request names another `metadata.uid` than that of the object: another object may
    /// have taken the name meanwhile.
    pub is_misdirected: bool,
    /// Whether nothing can be created in the namespace because it is being deleted or is gone.
    pub lacks_namespace: bool,
    /// The underlying error, for connection failures.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Classes of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// 401
    Unauthorized,
    /// 403
    Forbidden,
    /// 404
    NotFound,
    /// 409
    Conflict,
    /// 410: the resource version is too old.
    Gone,
    /// 422: the object or the patch is not acceptable, or a test operation failed.
    Invalid,
    /// 429
    TooManyRequests,
    /// Any other 4xx.
    Client(u16),
    /// 5xx
    Server(u16),
    /// There was no response in time.
    Timeout,
    /// The connection could not be established or was lost.
    Connection,
    /// The response could not be parsed.
    Malformed,
    /// There are no credentials.
    Login,
    /// We may not make changes now, since another replica may; nothing was sent.
    Fenced,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    kind: String,
    message: String,
    reason: Option<String>,
    code: u16,
    details: Option<Details>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    kind: Option<String>,
    retry_after_seconds: Option<u64>,
    causes: Option<Vec<Cause>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cause {
    reason: Option<String>,
    field: Option<String>,
}

impl Status {
    fn complains_about(&self, field: &str) -> bool {
        self.causes().filter_map(|cause| cause.field.as_deref()).any(|named| named == field)
    }

    /// Whether the namespace of the request is being deleted or does not exist.
    fn lacks_namespace(&self) -> bool {
        let is_going = |cause: &Cause| cause.reason.as_deref() == Some("NamespaceTerminating");
        let kind = self.details.as_ref().and_then(|details| details.kind.as_deref());
        let is_gone = self.reason.as_deref() == Some("NotFound") && kind == Some("namespaces");
        is_gone || self.causes().any(is_going)
    }

    fn causes(&self) -> impl Iterator<Item = &Cause> {
        self.details.iter().flat_map(|details| &details.causes).flatten()
    }
}

impl Failure {
    /// The class of an HTTP status code that is not a success.
    #[must_use]
    pub fn of_code(code: u16) -> Self {
        match code {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            409 => Self::Conflict,
            410 => Self::Gone,
            422 => Self::Invalid,
            429 => Self::TooManyRequests,
            500..=599 => Self::Server(code),
            _ => Self::Client(code),
        }
    }

    /// Whether the same request may succeed a little later.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(self, Self::TooManyRequests | Self::Server(_) | Self::Timeout | Self::Connection)
    }

    /// Whether the server rejects the request until rights, definitions or the request itself
    /// change.
    #[must_use]
    pub fn is_refusal(self) -> bool {
        matches!(self, Self::Forbidden | Self::NotFound | Self::Invalid | Self::Client(_))
    }

    /// The HTTP status code, if the server responded.
    #[must_use]
    pub fn code(self) -> Option<u16> {
        Some(match self {
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::Conflict => 409,
            Self::Gone => 410,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::Client(code) | Self::Server(code) => code,
            Self::Timeout | Self::Connection | Self::Malformed => return None,
            Self::Login | Self::Fenced => return None,
        })
    }
}

impl RequestError {
    /// A request that its caller gave up.
    #[must_use]
    pub fn overdue(patience: std::time::Duration) -> Self {
        let message = format!("no answer within {patience:?}");
        Self::local(Failure::Timeout, &Method::GET, "", message)
    }

    /// A failure without a response of the server.
    pub(crate) fn local(failure: Failure, method: &Method, path: &str, message: String) -> Self {
        Self {
            failure,
            method: method.clone(),
            path: path.into(),
            message: message.into(),
            reason: None,
            retry_after: None,
            is_misdirected: false,
            lacks_namespace: false,
            source: None,
        }
    }

    /// A failure reported by the server.
    pub(crate) fn answered(
        method: &Method,
        path: &str,
        code: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Self {
        let status = serde_json::from_slice::<Status>(body).ok().filter(|it| it.kind == "Status");
        let from_header = headers
            .get(http::header::RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.trim().parse::<f64>().ok())
            .and_then(asked_pause);
        let from_status = status
            .as_ref()
            .and_then(|it| it.details.as_ref()?.retry_after_seconds)
            .filter(|seconds| *seconds > 0)
            .and_then(|seconds| asked_pause(seconds as f64));
        let message = match &status {
            Some(status) if !status.message.is_empty() => status.message.clone(),
            _ => describe(code, body),
        };
        Self {
            failure: Failure::of_code(code.as_u16()),
            method: method.clone(),
            path: path.into(),
            message: message.into(),
            lacks_namespace: status.as_ref().is_some_and(Status::lacks_namespace),
            is_misdirected: status.as_ref().is_some_and(|it| it.complains_about("metadata.uid")),
            reason: status.and_then(|it| it.reason).map(Into::into),
            retry_after: from_header.or(from_status),
            source: None,
        }
    }

    /// A failure reported in a watch stream, as an object of kind `Status`.
    pub(crate) fn streamed(path: &str, object: &[u8]) -> Self {
        let status: Status = serde_json::from_slice(object).unwrap_or_default();
        let mut error = Self::local(
            Failure::of_code(status.code),
            &Method::GET,
            path,
            if status.message.is_empty() { "the watch failed".into() } else { status.message },
        );
        error.reason = status.reason.map(Into::into);
        error.retry_after = status
            .details
            .and_then(|it| it.retry_after_seconds)
            .and_then(|seconds| asked_pause(seconds as f64));
        error
    }

    /// The whole chain of causes in one line, for logs.
    #[must_use]
    pub fn report(&self) -> String {
        let mut text = self.to_string();
        let mut said = text.clone();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let more = error.to_string();
            // Many libraries repeat the cause in their own message.
            if !said.contains(&more) {
                text.push_str(": ");
                text.push_str(&more);
            }
            said = more;
            cause = error.source();
        }
        text
    }

    /// Whether one side rejects the other's certificate, for which there is no 401.
    pub(crate) fn is_about_certificates(&self) -> bool {
        self.source.as_deref().is_some_and(|error| is_certificate_rejected(error))
    }

    /// Adds to the message the RBAC rule that would allow the forbidden request.
    pub(crate) fn with_missing_rule(mut self) -> Self {
        let is_forbidden = self.failure == Failure::Forbidden;
        let rule = forbidden::missing_rule(&self.method, &self.path, &self.message);
        if let Some(rule) = rule.filter(|_| is_forbidden) {
            self.message = format!("{}; {rule}", self.message).into();
        }
        self
    }

    /// Whether the server was not reached at all, which is logged once for all requests.
    #[must_use]
    pub fn is_unreached(&self) -> bool {
        self.failure == Failure::Connection
            && self.source.as_deref().is_some_and(|error| is_unreached(error))
    }

    /// Whether the version to continue from is too old, so that a new list is needed.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.failure == Failure::Gone || self.reason.as_deref() == Some("Expired")
    }
}

/// The pause requested by a server, within our limit; `None` if it is invalid.
fn asked_pause(seconds: f64) -> Option<Duration> {
    if !seconds.is_finite() || seconds < 0.0 {
        return None;
    }
    if seconds > RETRY_AFTER_MAX.as_secs_f64() {
        let waiting = RETRY_AFTER_MAX;
        tracing::warn!(seconds, ?waiting, "the server asked for a very long pause; shortening it");
        return Some(waiting);
    }
    Duration::try_from_secs_f64(seconds).ok()
}

fn describe(code: StatusCode, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if text.is_empty() {
        return format!("the server answered {code}");
    }
    let shortened: String = text.chars().take(MESSAGE_MAX).collect();
    let dots = if shortened.len() < text.len() { "..." } else { "" };
    format!("the server answered {code}: {shortened}{dots}")
}

#[cfg(test)]
mod tests;
