//! Inputs about what happened: the reason, the difference, the old and new states.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use kopf_core::occasion::EventKind;
use kopf_core::{Call, Occasion, Reason, Subject};
use kopf_model::{DiffItem, DiffOperation, FieldPath};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Input, InputRef, Operation, subject};
use crate::error::Error;
use crate::filter::FilterInput;
use crate::kind::{CausedKind, ChangeKind, DiffKind, Event, NewKind, OldKind};
use crate::object::{FromObject, Object};

/// The difference between the last-handled object and the current one; in field handlers, only of
/// the field.
///
/// ```
/// # fn show(diff: &kopf_handler::input::Diff) {
/// for item in diff {
///     println!("{}: {:?} -> {:?}", item.field, item.old, item.new);
/// }
/// if diff.touches("spec.size") { /* ... */ }
/// # }
/// ```
#[derive(Clone, PartialEq)]
pub struct Diff(Arc<kopf_model::Diff>);

/// Why the handler is called, for functions with several attributes that need to distinguish them.
///
/// Indexes, desired children and observers have no cause: they are functions of the current state,
/// and several things may have happened since they were last called.
///
/// ```
/// use kopf_core::Reason;
/// use kopf_handler::input::Cause;
///
/// // With the attributes `#[kopf::on::create]`, `#[kopf::on::update]` and `#[kopf::on::timer]`.
/// async fn reconcile(cause: Cause) {
///     match cause {
///         Cause::Change { reason: Reason::Create, .. } => println!("a new one"),
///         Cause::Background => println!("just to be sure"),
///         cause => println!("because of {cause}"),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// A change was detected: in handlers of changes, and in their sub-handlers.
    Change {
        /// The reason; a resume handler that is called for an update sees `Update`.
        reason: Reason,
        /// Whether the object was first seen in a list after the operator's start.
        initial: bool,
    },
    /// The server sent an event of this type, or `None` for an object of a list: in event handlers.
    Event(Option<EventKind>),
    /// The object exists, and nothing else has to happen: in daemons and timers.
    Background,
    /// This operation is requested: in webhooks.
    Review(Operation),
}

/// The old state: the essence of the object, or the field in field handlers.
///
/// `None` for objects that were never handled, and for absent fields; so creations have none at
/// all. In webhooks it is the whole object before the request.
#[derive(Clone, Debug, PartialEq)]
pub struct Old<T = Value>(pub Option<T>);

/// The current state: the essence of the object, or the field in field handlers.
///
/// `None` for absent fields, and for deletions in webhooks.
#[derive(Clone, Debug, PartialEq)]
pub struct New<T = Value>(pub Option<T>);

/// The old and the current state.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<T = Value> {
    /// The old state, if any.
    pub old: Option<T>,
    /// The current state, if any.
    pub new: Option<T>,
}

/// An event as sent by the server; displayed as JSON.
#[derive(Clone, Debug)]
pub struct RawEvent {
    /// The type; `None` for objects from a list.
    pub kind: Option<EventKind>,
    /// The object.
    pub object: Object,
}

impl Diff {
    /// Whether anything at or below this path differs, or the path itself was added or removed.
    pub fn touches(&self, path: impl Into<FieldPath>) -> bool {
        let path = path.into();
        self.0.iter().any(|item| item.field.keys().zip(path.keys()).all(|(a, b)| a == b))
    }

    fn of(occasion: &Occasion) -> Option<Self> {
        match occasion {
            Occasion::Change(change) => Some(Self(Arc::clone(&change.diff))),
            Occasion::Admission(review) => Some(Self(Arc::clone(&review.diff))),
            _ => None,
        }
    }
}

/// Conditions see the difference of the whole object, even those of field handlers.
impl FilterInput for Diff {
    fn read(_: &Subject, occasion: &Occasion) -> Option<Self> {
        Self::of(occasion)
    }
}

impl Cause {
    /// The reason, if it is a detected change.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Change { reason, .. } => Some(*reason),
            _ => None,
        }
    }

    /// Whether it is a change of an object that was first seen in a list after the operator's
    /// start.
    #[must_use]
    pub fn is_initial(&self) -> bool {
        matches!(self, Self::Change { initial: true, .. })
    }

    fn of(occasion: &Occasion) -> Option<Self> {
        match occasion {
            Occasion::Change(change) => {
                Some(Self::Change { reason: change.reason, initial: change.initial })
            }
            Occasion::Event { kind } => Some(Self::Event(*kind)),
            Occasion::Background { .. } => Some(Self::Background),
            Occasion::Admission(review) => Some(Self::Review(Operation(review.operation.clone()))),
            _ => None,
        }
    }
}

/// As one word: `update`, `ADDED`, `listed`, `background`, `DELETE`.
impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Change { reason, .. } => reason.as_str(),
            Self::Event(kind) => kind.map_or("listed", EventKind::as_str),
            Self::Background => "background",
            Self::Review(operation) => operation,
        })
    }
}

/// Conditions of indexes, desired children and observers see none, so they never hold.
impl FilterInput for Cause {
    fn read(_: &Subject, occasion: &Occasion) -> Option<Self> {
        Self::of(occasion)
    }
}

impl Deref for Diff {
    type Target = kopf_model::Diff;

    fn deref(&self) -> &kopf_model::Diff {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Diff {
    type Item = &'a DiffItem;
    type IntoIter = std::slice::Iter<'a, DiffItem>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// As a list of `(operation, field, old, new)`.
impl fmt::Display for Diff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.0.iter().map(|item| {
            let operation = match item.operation {
                DiffOperation::Add => "add",
                DiffOperation::Change => "change",
                DiffOperation::Remove => "remove",
            };
            json!([operation, item.field.keys().collect::<Vec<_>>(), item.old, item.new])
        });
        Value::from_iter(items).fmt(formatter)
    }
}

impl fmt::Debug for Diff {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Display for RawEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.map(EventKind::as_str);
        json!({"type": kind, "object": self.object.value()}).fmt(formatter)
    }
}

#[diagnostic::do_not_recommend]
impl<K: DiffKind> InputRef<K> for Diff {
    fn take(call: &Call) -> Result<Self, Error> {
        Self::of(&call.occasion).ok_or_else(|| wrong_occasion(call))
    }
}

#[diagnostic::do_not_recommend]
impl<K: DiffKind> Input<K> for Diff {
    fn take(call: &Call) -> Result<Self, Error> {
        Self::of(&call.occasion).ok_or_else(|| wrong_occasion(call))
    }
}

#[diagnostic::do_not_recommend]
impl<K: ChangeKind> Input<K> for Reason {
    fn take(call: &Call) -> Result<Self, Error> {
        change(call).map(|change| change.reason)
    }
}

#[diagnostic::do_not_recommend]
impl<K: CausedKind> Input<K> for Cause {
    fn take(call: &Call) -> Result<Self, Error> {
        Self::of(&call.occasion).ok_or_else(|| wrong_occasion(call))
    }
}

#[diagnostic::do_not_recommend]
impl<K: OldKind, T: DeserializeOwned + Send + Sync + 'static> Input<K> for Old<T> {
    fn take(call: &Call) -> Result<Self, Error> {
        state(call, Side::Old).map(Self)
    }
}

#[diagnostic::do_not_recommend]
impl<K: NewKind, T: DeserializeOwned + Send + Sync + 'static> Input<K> for New<T> {
    fn take(call: &Call) -> Result<Self, Error> {
        state(call, Side::New).map(Self)
    }
}

#[diagnostic::do_not_recommend]
impl<K: DiffKind, T: DeserializeOwned + Send + Sync + 'static> Input<K> for Change<T> {
    fn take(call: &Call) -> Result<Self, Error> {
        Ok(Self { old: state(call, Side::Old)?, new: state(call, Side::New)? })
    }
}

#[diagnostic::do_not_recommend]
impl Input<Event> for RawEvent {
    fn take(call: &Call) -> Result<Self, Error> {
        let Occasion::Event { kind } = &call.occasion else { return Err(wrong_occasion(call)) };
        Ok(Self { kind: *kind, object: Object::from_object(subject(call)?)? })
    }
}

/// The type of the raw event; `None` for objects from a list.
#[diagnostic::do_not_recommend]
impl Input<Event> for Option<EventKind> {
    fn take(call: &Call) -> Result<Self, Error> {
        match &call.occasion {
            Occasion::Event { kind } => Ok(*kind),
            _ => Err(wrong_occasion(call)),
        }
    }
}

enum Side {
    Old,
    New,
}

fn state<T: DeserializeOwned + Send + Sync + 'static>(
    call: &Call,
    side: Side,
) -> Result<Option<T>, Error> {
    match &call.occasion {
        Occasion::Change(change) => {
            let value = match side {
                Side::Old => &change.old,
                Side::New => &change.new,
            };
            let Some(value) = value else { return Ok(None) };
            match T::deserialize(value.value()) {
                Ok(state) => Ok(Some(state)),
                // The essence of a whole object has no identity, which typed objects require.
                Err(error) => T::deserialize(with_identity(value, call)?)
                    .map(Some)
                    .map_err(|_| Error::from(error)),
            }
        }
        Occasion::Admission(review) => {
            let object = match side {
                Side::Old => &review.old,
                Side::New => &review.new,
            };
            Ok(object.as_ref().map(kopf_model::Object::to).transpose()?)
        }
        _ => Err(wrong_occasion(call)),
    }
}

fn with_identity(essence: &Value, call: &Call) -> Result<Value, Error> {
    let object = &subject(call)?.object;
    let mut whole = essence.clone();
    if let Value::Object(fields) = &mut whole {
        fields.entry("apiVersion").or_insert_with(|| object.api_version().into());
        fields.entry("kind").or_insert_with(|| object.kind().into());
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        if let Value::Object(metadata) = metadata {
            metadata.entry("name").or_insert_with(|| object.name().into());
        }
    }
    Ok(whole)
}

fn change(call: &Call) -> Result<&kopf_core::occasion::Change, Error> {
    match &call.occasion {
        Occasion::Change(change) => Ok(change),
        _ => Err(wrong_occasion(call)),
    }
}

pub(super) fn wrong_occasion(call: &Call) -> Error {
    let id = &call.handler.id;
    Error::from(format!("handler {id} was called on an occasion of another kind")).permanent()
}
