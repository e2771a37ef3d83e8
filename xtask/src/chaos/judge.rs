//! The judge of a chaos run: finds violations in a [`History`].
//!
//! Pure; each property is a function in its own file. Knows the handlers of the chaos operator and
//! what each of them must have seen.

mod changes;
mod repeats;
mod rest;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::history::{Call, History, Version};

/// The properties of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Property {
    /// Every handler last succeeded with the final state.
    MissedChange,
    /// Objects count as handled, with nothing left over.
    Unhandled,
    /// No handler was called again for a state after its success was stored.
    Repeated,
    /// Deleted objects and definitions are gone.
    StuckDeletion,
    /// Deletion handlers ran before their objects were gone.
    MissedDeletion,
    /// There is one timer and one daemon for every object.
    Background,
    Children,
    /// The operator ends only when asked to.
    Process,
    /// Memory, descriptors and threads do not grow when idle.
    Usage,
    /// The server has all acknowledged edits.
    Server,
    /// No two replicas act on an object at the same time.
    TwoOwners,
}

impl Property {
    pub(super) const ALL: [Self; 11] = [
        Self::MissedChange,
        Self::Unhandled,
        Self::Repeated,
        Self::StuckDeletion,
        Self::MissedDeletion,
        Self::Background,
        Self::Children,
        Self::Process,
        Self::Usage,
        Self::Server,
        Self::TwoOwners,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::MissedChange => "last change missed by a handler",
            Self::Unhandled => "objects not handled at the end",
            Self::Repeated => "handlers repeated after a stored success",
            Self::StuckDeletion => "stuck deletions (objects, definitions)",
            Self::MissedDeletion => "deleted without deletion handlers",
            Self::Background => "timers and daemons dead or doubled",
            Self::Children => "children other than declared",
            Self::Process => "ended by itself, or did not end",
            Self::Usage => "memory, descriptors, threads grew",
            Self::Server => "acknowledged edits lost by the server",
            Self::TwoOwners => "two replicas at the same object at once",
        }
    }
}

/// One violation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    pub(super) property: Property,
    pub(super) text: String,
    /// The uid of the object, if the violation concerns one.
    pub(super) object: Option<String>,
}

impl Finding {
    pub(super) fn new(property: Property, text: impl Into<String>) -> Self {
        Self { property, text: text.into(), object: None }
    }

    fn of_object(mut self, uid: &str) -> Self {
        self.object = Some(uid.to_owned());
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.property.title(), self.text)
    }
}

/// All violations of a run.
pub(super) fn judge(history: &History) -> Vec<Finding> {
    let evidence = Evidence::new(history);
    let mut findings = changes::missed(&evidence);
    findings.extend(changes::unhandled(history));
    findings.extend(repeats::repeated(&evidence));
    findings.extend(rest::deletions(&evidence));
    findings.extend(rest::background(history));
    findings.extend(rest::children(history));
    findings.extend(rest::processes(history));
    findings.extend(rest::usage(history));
    let server = history.server.iter();
    findings.extend(server.map(|text| Finding::new(Property::Server, text.as_str())));
    findings
}

/// The number of ended calls whose outcome was observed as stored, and the number of ended calls.
///
/// Shows the coverage of the judge: repetitions can be detected only for the former.
pub(super) fn coverage(history: &History) -> (usize, usize) {
    let handler = |call: &Call| HANDLERS.iter().find(|handler| handler.id == call.handler);
    let ended = history.calls.iter().filter(|call| call.outcome.is_final());
    let ended: Vec<_> = ended.filter_map(|call| Some((call, handler(call)?))).collect();
    let is_stored = |(call, handler): &&(&Call, &Handler)| {
        let versions = history.versions.get(&call.uid).map(Vec::as_slice).unwrap_or_default();
        stored(call, handler, versions).is_some()
    };
    (ended.iter().filter(is_stored).count(), ended.len())
}

/// A change handler.
struct Handler {
    id: &'static str,
    /// The name of its progress record.
    record: &'static str,
    view: View,
    /// Whether it is also called for creations.
    on_create: bool,
}

/// The part of the state that a handler depends on.
#[derive(Clone, Copy)]
enum View {
    Whole,
    Color,
    /// The whole state, but only of objects with the label.
    Gold,
}

impl View {
    /// The part of a state that a handler sees; `None` if the state is not relevant for it.
    fn of(self, state: &Value) -> Option<Value> {
        match self {
            Self::Whole => Some(state.clone()),
            Self::Color => Some(state["spec"]["color"].clone()),
            Self::Gold => (state["labels"]["tier"] == "gold").then(|| state.clone()),
        }
    }

    /// The part that was passed to the handler; a field handler gets its field as a separate
    /// argument.
    fn given(self, call: &Call) -> Option<Value> {
        match self {
            Self::Color => Some(call.new.clone()),
            view => view.of(&call.state()),
        }
    }
}

const HANDLERS: [Handler; 9] = [
    Handler { id: "fast", record: "fast", view: View::Whole, on_create: true },
    Handler { id: "slow", record: "slow", view: View::Whole, on_create: true },
    Handler { id: "flaky", record: "flaky", view: View::Whole, on_create: true },
    Handler { id: "picky", record: "picky", view: View::Whole, on_create: true },
    Handler { id: "changed", record: "changed", view: View::Whole, on_create: false },
    Handler { id: "gilded", record: "gilded", view: View::Gold, on_create: true },
    Handler { id: "colored", record: "colored.spec.color", view: View::Color, on_create: true },
    Handler { id: "parent/a", record: "parent.a", view: View::Whole, on_create: true },
    Handler { id: "parent/b", record: "parent.b", view: View::Whole, on_create: true },
];

/// The version that stores the outcome of a call: the first one after the handler's version that
/// has a new and final record of the handler, or that counts the state as handled.
///
/// A record from before the call is about an older state, and proves nothing.
fn stored<'a>(call: &Call, handler: &Handler, versions: &'a [Version]) -> Option<&'a Version> {
    let before = versions.iter().rfind(|version| version.version <= call.version);
    let record_before = before.and_then(|version| version.progress.get(handler.record));
    let handled_before = before.and_then(|version| version.handled.as_ref());
    let given = handler.view.given(call);
    versions.iter().filter(|version| version.version > call.version).find(|version| {
        let record = version.progress.get(handler.record);
        let is_recorded = record != record_before && record.is_some_and(|text| is_final(text));
        let handled = version.handled.as_ref();
        let is_handled =
            handled != handled_before && handled.and_then(|state| handler.view.of(state)) == given;
        is_recorded || is_handled
    })
}

fn is_final(record: &str) -> bool {
    let record: Value = serde_json::from_str(record).unwrap_or_default();
    record["success"] == true || record["failure"] == true
}

/// A history with its calls by object and handler.
struct Evidence<'a> {
    history: &'a History,
    calls: BTreeMap<&'a str, BTreeMap<&'a str, Vec<&'a Call>>>,
}

impl<'a> Evidence<'a> {
    fn new(history: &'a History) -> Self {
        let mut calls: BTreeMap<_, BTreeMap<_, Vec<_>>> = BTreeMap::new();
        for call in &history.calls {
            let of_object = calls.entry(call.uid.as_str()).or_default();
            of_object.entry(call.handler.as_str()).or_default().push(call);
        }
        Self { history, calls }
    }

    fn calls(&self, uid: &str, handler: &str) -> &[&'a Call] {
        let of_object = self.calls.get(uid);
        let calls = of_object.and_then(|calls| calls.get(handler));
        calls.map(Vec::as_slice).unwrap_or_default()
    }

    fn versions(&self, uid: &str) -> &'a [Version] {
        self.history.versions.get(uid).map(Vec::as_slice).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
