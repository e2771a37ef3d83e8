//! The object's status as a typed value: changes are written once, and only if there are any.

use std::ops::{Deref, DerefMut};

use kopf_core::Call;
use kopf_core::handler::Touches;
use kopf_model::Patch;
use kopf_model::condition::{CONDITIONS, ConditionChanges};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{InputMut, InputRef, subject};
use crate::error::Error;
use crate::kind::{ObjectKind, ReadKind};
use crate::merge;

/// The object's status.
///
/// `&Status<T>` reads it; with `&mut Status<T>`, the changed fields become part of the single write
/// of the cycle. It starts as `T::default()` for objects without a status. A bare `Status` is a
/// JSON map.
///
/// A changed list replaces the whole list, as in any merge patch, with one exception: `conditions`
/// are merged by type, so that those of other writers are kept. See
/// [`Conditions`](super::Conditions) for setting single ones.
#[derive(Debug)]
pub struct Status<T = Map<String, Value>> {
    value: T,
    before: Value,
}

impl<T> Deref for Status<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Status<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> AsMut<Self> for Status<T> {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl<T: DeserializeOwned + Default> Status<T> {
    fn read(call: &Call) -> Result<Self, Error> {
        let subject = subject(call)?;
        let status = subject.object.stanza("status");
        // Changes of earlier handlers in this cycle are included.
        let before = call.patch.lock().status_after(status.as_deref());
        let value = match &before {
            Value::Null => T::default(),
            status => T::deserialize(status).map_err(|source| {
                let (kind, key) = (subject.object.kind(), subject.object.key());
                format!("the status of {kind} {key} does not fit its type: {source}")
            })?,
        };
        Ok(Self { value, before })
    }
}

#[diagnostic::do_not_recommend]
impl<K: ReadKind, T: DeserializeOwned + Default> InputRef<K> for Status<T> {
    fn take(call: &Call) -> Result<Self, Error> {
        Self::read(call)
    }
}

#[diagnostic::do_not_recommend]
impl<K: ObjectKind, T> InputMut<K> for Status<T>
where
    T: DeserializeOwned + Serialize + Default + Send,
{
    type Held = Self;

    async fn take(call: &Call) -> Result<Self, Error> {
        let mut status = Self::read(call)?;
        // Fields unknown to the type are kept, so the comparison is between the type's serialized
        // forms before and after.
        if !status.before.is_null() {
            status.before = serde_json::to_value(&status.value)?;
        }
        Ok(status)
    }

    fn put_back(held: Self, call: &Call) -> Result<(), Error> {
        let (mut before, mut after) = (held.before, serde_json::to_value(&held.value)?);
        let untouched = before.is_null() && after == serde_json::to_value(T::default())?;
        if untouched {
            return Ok(());
        }
        let conditions = take_conditions(&mut before, &mut after).unwrap_or_default();
        let mut patch = Patch { conditions, ..Patch::default() };
        if let Some(change) = merge::difference(&before, &after) {
            patch.merge.insert("status".to_owned(), change);
        }
        if !patch.is_empty() {
            call.patch.lock().absorb_from(&call.handler.id, patch);
        }
        Ok(())
    }

    fn touches() -> Touches {
        Touches { status: true, ..Touches::nothing() }
    }
}

/// Takes the conditions out of both states, and returns how they differ.
///
/// `None` if they are not conditions; they are then compared like any other list.
fn take_conditions(before: &mut Value, after: &mut Value) -> Option<ConditionChanges> {
    let list = |status: &Value| match status.get(CONDITIONS) {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(list)) => Some(list.clone()),
        Some(_) => None,
    };
    // Without a list there is nothing to merge: null removes it.
    let is_listed = |status: &Value| status.get(CONDITIONS).is_some_and(Value::is_array);
    if !is_listed(before) && !is_listed(after) {
        return None;
    }
    let changes = ConditionChanges::between(&list(before)?, &list(after)?)?;
    for status in [before, after] {
        status.as_object_mut().map(|status| status.shift_remove(CONDITIONS));
    }
    Some(changes)
}
