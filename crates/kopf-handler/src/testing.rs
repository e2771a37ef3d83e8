//! Calls made by hand, for testing handlers without an engine.

use std::sync::Arc;

use kopf_core::invoke::{Attempt, Extensions, Indexes, OperatorContext, Record};
use kopf_core::{Call, Handler, Invocation, Occasion, Returned, Settings, Subject};
use kopf_model::{Object, Resource, Timestamp};
use serde_json::Value;

/// A namespaced resource with a status subresource.
#[must_use]
pub fn resource(group: &str, version: &str, plural: &str, kind: &str) -> Arc<Resource> {
    Arc::new(Resource {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        kind: kind.into(),
        singular: kind.to_lowercase(),
        shortcuts: [].into(),
        categories: [].into(),
        subresources: ["status".into()].into(),
        namespaced: true,
        preferred: true,
        verbs: ["list", "watch", "patch"].map(Into::into).into(),
    })
}

/// The subject of a call: an object with a resource guessed from its kind.
#[must_use]
pub fn subject(object: Value) -> Subject {
    let object = Object::from_value(object);
    let (group, version) =
        object.api_version().split_once('/').unwrap_or(("", object.api_version()));
    let plural = format!("{}s", object.kind().to_lowercase());
    Subject { resource: resource(group, version, &plural, object.kind()), object }
}

/// The first call of a handler at the given time, with empty memory and no state.
#[must_use]
pub fn call(
    handler: Handler,
    subject: Option<Subject>,
    occasion: Occasion,
    now: Timestamp,
) -> Call {
    Call {
        handler: Arc::new(handler),
        subject,
        occasion,
        attempt: Attempt { retry: 0, started: now, now },
        patch: Arc::default(),
        memo: Arc::default(),
        indexes: Arc::new(Indexes::default()),
        stopped: None,
        sub_handlers: None,
        family: None,
        warnings: Some(Arc::default()),
        operator: Arc::new(OperatorContext {
            settings: Settings::default().into(),
            state: Extensions::default(),
            recorder: Arc::new(NoEvents),
        }),
    }
}

/// Calls a handler and waits for its result, on the current thread.
///
/// # Errors
/// Returns the handler's own failure.
pub fn run(call: Call) -> Returned {
    let handler = Arc::clone(&call.handler);
    match handler.invoke.invoke(call) {
        Invocation::Future(future) => futures::executor::block_on(future),
        Invocation::Blocking(function) => function(),
    }
}

struct NoEvents;

impl Record for NoEvents {
    fn record(&self, _: &Subject, _: &str, _: &str, _: &str) {}
}
