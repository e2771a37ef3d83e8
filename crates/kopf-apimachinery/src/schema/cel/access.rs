//! The `authorizer` of admission expressions: authorization checks, built step by step.
//!
//! Each step yields a map with the attributes so far; `check` yields the decision. The environment
//! provides the authorizer.

use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, ExecutionError, Value as CelValue};
use serde_json::Value;

use super::condition::current;
use crate::access::{Attributes, Decision};

/// Answers authorization checks for the requesting user, or for a service account with the given
/// namespace and name.
pub type Access = Arc<dyn Fn(Option<(&str, &str)>, &Attributes) -> Decision + Send + Sync>;

/// The steps that add one string to a check.
const STEPS: [&str; 6] = ["path", "group", "resource", "subresource", "namespace", "name"];
/// Keys that no object has: field names contain no spaces.
const ALLOWED: &str = "the answer is yes";
const REASON: &str = "the reason of the answer";
const ACCOUNT: &str = "the service account";

type Outcome = Result<CelValue, ExecutionError>;

/// The value of `authorizer`, with the resource of the request.
pub(super) fn authorizer(request: Option<&Value>) -> CelValue {
    let said = |value: Option<&Value>| text(value.and_then(Value::as_str).unwrap_or_default());
    let field = |key: &str| said(request.and_then(|request| request.get(key)));
    let resource = request.and_then(|request| request.get("resource"));
    let part = |key: &str| said(resource.and_then(|resource| resource.get(key)));
    let own = [
        ("group", part("group")),
        ("resource", part("resource")),
        ("subresource", field("subResource")),
        ("namespace", field("namespace")),
        ("name", field("name")),
    ];
    map([("requestResource", map(own))])
}

/// Adds the functions of the authorizer.
pub(super) fn add_functions(context: &mut Context<'_>) {
    for step in STEPS {
        context.add_function(
            step,
            move |This(said): This<CelValue>, word: Arc<String>| -> Outcome {
                let mut entries = entries(&said)?;
                entries.insert(key(step), CelValue::String(word));
                Ok(CelValue::Map(Map { map: Arc::new(entries) }))
            },
        );
    }
    context.add_function("serviceAccount", service_account);
    context.add_function("check", check);
    context.add_function("allowed", |This(answer): This<CelValue>| -> Outcome {
        entries(&answer)?.remove(&key(ALLOWED)).ok_or(ExecutionError::NoSuchOverload)
    });
    context.add_function("reason", |This(answer): This<CelValue>| -> Outcome {
        entries(&answer)?.remove(&key(REASON)).ok_or(ExecutionError::NoSuchOverload)
    });
    // Here, a check always has a decision.
    context.add_function("errored", |This(_): This<CelValue>| -> Outcome {
        Ok(CelValue::Bool(false))
    });
    context.add_function("error", |This(_): This<CelValue>| -> Outcome { Ok(text("")) });
}

fn service_account(
    This(said): This<CelValue>,
    namespace: Arc<String>,
    name: Arc<String>,
) -> Outcome {
    let mut entries = entries(&said)?;
    entries.insert(key(ACCOUNT), text(&format!("{namespace}/{name}")));
    Ok(CelValue::Map(Map { map: Arc::new(entries) }))
}

fn check(This(said): This<CelValue>, verb: Arc<String>) -> Outcome {
    let entries = entries(&said)?;
    let part = |name: &str| match entries.get(&key(name)) {
        Some(CelValue::String(text)) => text.to_string(),
        _ => String::new(),
    };
    let attributes = Attributes {
        verb: verb.to_string(),
        group: part("group"),
        version: String::new(),
        resource: part("resource"),
        subresource: part("subresource"),
        namespace: part("namespace"),
        name: part("name"),
        path: part("path"),
    };
    let environment = current();
    let access = environment.as_ref().and_then(|environment| environment.access.as_ref());
    let access = access.ok_or(ExecutionError::NoSuchOverload)?;
    let account = part(ACCOUNT);
    let (is_allowed, reason) = match access(account.split_once('/'), &attributes) {
        Decision::Allow(reason) => (true, reason),
        Decision::Deny(reason) => (false, reason),
    };
    Ok(map([(ALLOWED, CelValue::Bool(is_allowed)), (REASON, text(&reason))]))
}

fn entries(value: &CelValue) -> Result<HashMap<Key, CelValue>, ExecutionError> {
    match value {
        CelValue::Map(map) => Ok((*map.map).clone()),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn key(name: &str) -> Key {
    Key::String(Arc::new(name.to_owned()))
}

fn text(text: &str) -> CelValue {
    CelValue::String(Arc::new(text.to_owned()))
}

fn map<'k>(entries: impl IntoIterator<Item = (&'k str, CelValue)>) -> CelValue {
    let entries = entries.into_iter().map(|(name, value)| (key(name), value)).collect();
    CelValue::Map(Map { map: Arc::new(entries) })
}
