//! The object's status as a typed value: changes are written once, and only if there are any.

use std::ops::{Deref, DerefMut};

use kopf_core::Call;
use kopf_core::handler::Touches;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{InputMut, InputRef, subject};
use crate::error::Error;
use crate::kind::{ObjectKind, ViewKind};
use crate::merge;

/// The object's status.
///
/// `&Status<T>` reads it; with `&mut Status<T>` the changed fields join the one write of the cycle.
/// It starts as `T::default()` for objects without a status. A bare `Status` is a JSON map.
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
        let mut before = subject.object.value().get("status").cloned().unwrap_or_default();
        // What earlier handlers of this cycle have changed counts already.
        if let Some(Value::Object(pending)) = call.patch.lock().merge.get("status") {
            kopf_model::merge::apply(&mut before, pending);
        }
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

impl<K: ViewKind, T: DeserializeOwned + Default> InputRef<K> for Status<T> {
    fn take(call: &Call) -> Result<Self, Error> {
        Self::read(call)
    }
}

impl<K: ObjectKind, T> InputMut<K> for Status<T>
where
    T: DeserializeOwned + Serialize + Default + Send,
{
    type Held = Self;

    async fn take(call: &Call) -> Result<Self, Error> {
        let mut status = Self::read(call)?;
        // Fields that the type does not know stay as they are, so the comparison is between what
        // the type wrote before and what it writes after.
        if !status.before.is_null() {
            status.before = serde_json::to_value(&status.value)?;
        }
        Ok(status)
    }

    fn put_back(held: Self, call: &Call) -> Result<(), Error> {
        let after = serde_json::to_value(&held.value)?;
        let untouched = held.before.is_null() && after == serde_json::to_value(T::default())?;
        if untouched {
            return Ok(());
        }
        if let Some(change) = merge::difference(&held.before, &after) {
            let changes = Map::from_iter([("status".to_owned(), change)]);
            kopf_model::merge::combine(&mut call.patch.lock().merge, changes);
        }
        Ok(())
    }

    fn touches() -> Touches {
        Touches { status: true, ..Touches::nothing() }
    }
}
