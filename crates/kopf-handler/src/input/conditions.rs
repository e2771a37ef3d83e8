//! The object's conditions: set and removed by type, merged with those of all other writers.

use kopf_core::Call;
use kopf_core::handler::Touches;
use kopf_model::condition::{self, CONDITIONS, Condition, ConditionChanges};
use kopf_model::{Patch, Timestamp};
use serde_json::Value;

use super::{InputMut, InputRef, Plain, subject};
use crate::error::Error;
use crate::kind::{ObjectKind, ReadKind};

/// The conditions in the object's status.
///
/// `&Conditions` reads them; with `&mut Conditions`, the changed ones become part of the single
/// write of the cycle. They are merged by type into the newest list, so that conditions of other
/// handlers, controllers and the framework are kept. As in Kubernetes, `lastTransitionTime` changes
/// only with the status, and `observedGeneration` is the generation that the handler sees, unless
/// given.
///
/// ```
/// use kopf_handler::input::Conditions;
/// use kopf_model::condition::{Condition, ConditionStatus};
///
/// async fn check(conditions: &mut Conditions) {
///     conditions.set(Condition::new("Reachable", true, "Answered").message("within 3 ms"));
///     conditions.set(Condition::new("Synced", ConditionStatus::Unknown, "NeverTried"));
///     conditions.remove("Outdated");
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Conditions {
    list: Vec<Value>,
    changes: ConditionChanges,
    generation: Option<i64>,
    now: Timestamp,
}

impl Conditions {
    /// The condition of a type, including those set so far.
    #[must_use]
    pub fn get(&self, kind: &str) -> Option<Condition> {
        condition::condition(&self.list, kind).and_then(Condition::from_value)
    }

    /// Whether there is a condition of this type that is true.
    #[must_use]
    pub fn is_true(&self, kind: &str) -> bool {
        self.get(kind).is_some_and(|condition| condition.is_true())
    }

    /// All conditions, including those of others.
    pub fn iter(&self) -> impl Iterator<Item = Condition> {
        self.list.iter().filter_map(Condition::from_value)
    }

    /// Sets a condition, replacing the previous one of its type.
    pub fn set(&mut self, mut condition: Condition) {
        condition.observed_generation = condition.observed_generation.or(self.generation);
        let mut change = ConditionChanges::default();
        change.set(condition, self.now);
        self.apply(change);
    }

    /// Removes the condition of a type.
    pub fn remove(&mut self, kind: &str) {
        let mut change = ConditionChanges::default();
        change.remove(kind);
        self.apply(change);
    }

    fn apply(&mut self, change: ConditionChanges) {
        // Unchanged conditions are not written.
        let known = Value::Array(std::mem::take(&mut self.list));
        let changed = change.applied_to(Some(&known));
        if changed.is_some() {
            self.changes.absorb(change);
        }
        if let Value::Array(list) = changed.unwrap_or(known) {
            self.list = list;
        }
    }

    fn read(call: &Call) -> Result<Self, Error> {
        let subject = subject(call)?;
        let status = subject.object.stanza("status");
        // Changes of earlier handlers in this cycle are included.
        let status = call.patch.lock().status_after(status.as_deref());
        let list = status.get(CONDITIONS).and_then(Value::as_array).cloned().unwrap_or_default();
        // If the status is not a subresource, writing it increments the generation.
        let has_status = subject.resource.subresources.contains("status");
        let generation = subject.object.generation().filter(|_| has_status);
        Ok(Self { list, changes: ConditionChanges::default(), generation, now: call.attempt.now })
    }
}

#[diagnostic::do_not_recommend]
impl<K: ReadKind> InputRef<K> for Conditions {
    fn take(call: &Call) -> Result<Self, Error> {
        Self::read(call)
    }
}

#[diagnostic::do_not_recommend]
impl<K: ObjectKind> InputMut<K> for Conditions {
    type Held = Plain<Self>;

    async fn take(call: &Call) -> Result<Plain<Self>, Error> {
        Ok(Plain(Self::read(call)?))
    }

    fn put_back(held: Plain<Self>, call: &Call) -> Result<(), Error> {
        if !held.0.changes.is_empty() {
            let patch = Patch { conditions: held.0.changes, ..Patch::default() };
            call.patch.lock().absorb_from(&call.handler.id, patch);
        }
        Ok(())
    }

    fn touches() -> Touches {
        Touches { status: true, ..Touches::nothing() }
    }
}
