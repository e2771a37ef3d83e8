//! The audit log: one line of JSON per request, as upstream writes it at level `Metadata`.
//!
//! Bodies are never logged. A watch is logged when it starts, other requests when they are
//! answered.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Response;
use http::header::USER_AGENT;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::User;
use crate::body::Body;
use crate::http_request::Request;
use crate::request::RequestInfo;

/// The destination of audit events.
pub(crate) struct AuditLog {
    // Locked while one line is written.
    out: Mutex<Box<dyn Write + Send>>,
    has_failed: AtomicBool,
}

/// Information about a request besides its headers.
#[derive(Default)]
pub(crate) struct Trail {
    /// The user who sent it.
    pub(crate) user: Option<Arc<User>>,
    /// The impersonated user, if any.
    pub(crate) impersonated: Option<Arc<User>>,
    /// The requested resource; `None` for other paths.
    pub(crate) info: Option<Arc<RequestInfo>>,
}

/// Audit annotations from plugins, attached to the response.
#[derive(Clone, Default)]
pub(crate) struct Annotations(pub(crate) Vec<(String, String)>);

impl AuditLog {
    pub(crate) fn new(out: impl Write + Send + 'static) -> Self {
        Self { out: Mutex::new(Box::new(out)), has_failed: AtomicBool::new(false) }
    }

    /// Writes a line; failures are reported once.
    pub(crate) fn write(&self, event: &Value) {
        let mut line = event.to_string();
        line.push('\n');
        let outcome = {
            let mut out = self.out.lock();
            out.write_all(line.as_bytes()).and_then(|()| out.flush())
        };
        match outcome {
            Ok(()) => self.has_failed.store(false, Ordering::Relaxed),
            Err(error) if !self.has_failed.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%error, "could not write to the audit log");
            }
            Err(_) => {}
        }
    }
}

/// The event of an answered request.
pub(crate) fn event(
    id: &str,
    request: &Request,
    trail: &Trail,
    response: &Response<Body>,
    (received, answered): (Timestamp, Timestamp),
) -> Value {
    let is_watch = response.body().is_watch();
    let verb = match &trail.info {
        Some(info) => info.verb.as_str().to_owned(),
        None => request.method.as_str().to_lowercase(),
    };
    let mut event = json!({
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": id,
        "stage": if is_watch { "ResponseStarted" } else { "ResponseComplete" },
        "requestURI": request.target,
        "verb": verb,
        "user": trail.user.as_ref().map_or_else(|| json!({}), |user| user.to_value()),
    });
    if let Some(user) = &trail.impersonated {
        event["impersonatedUser"] = user.to_value();
    }
    let agent = request.header(&USER_AGENT);
    if !agent.is_empty() {
        event["userAgent"] = json!(agent);
    }
    if let Some(info) = &trail.info {
        event["objectRef"] = reference(info);
    }
    event["responseStatus"] = json!({ "metadata": {}, "code": response.status().as_u16() });
    event["requestReceivedTimestamp"] = json!(format!("{received:.6}"));
    event["stageTimestamp"] = json!(format!("{answered:.6}"));
    let annotations = response.extensions().get::<Annotations>();
    for (key, value) in annotations.iter().flat_map(|found| &found.0) {
        event["annotations"][key] = json!(value);
    }
    event
}

fn reference(info: &RequestInfo) -> Value {
    let parts = [
        ("resource", &info.resource),
        ("namespace", &info.namespace),
        ("name", &info.name),
        ("apiGroup", &info.group),
        ("apiVersion", &info.version),
        ("subresource", &info.subresource),
    ];
    let told = parts.into_iter().filter(|(_, text)| !text.is_empty());
    Value::Object(told.map(|(key, text)| (key.to_owned(), json!(text))).collect())
}
