//! Conditions of objects: changes per type, which merge into any newer list in `status.conditions`.
//!
//! A merge patch replaces whole lists, so the list is computed from the newest known object just
//! before it is written. Conditions of other types are left unchanged.

use serde_json::{Map, Value, json};

use crate::Timestamp;
use crate::merge;

/// The key of conditions within the status.
pub const CONDITIONS: &str = "conditions";

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// It is unknown whether the condition holds.
    Unknown,
}

impl ConditionStatus {
    /// The value as Kubernetes writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

impl std::fmt::Display for ConditionStatus {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// One condition of an object, as in `metav1.Condition`.
///
/// ```
/// use kopf_model::condition::{Condition, ConditionStatus};
///
/// let ready = Condition::new("Ready", true, "Started").message("all replicas are up");
/// assert_eq!(ready.status, ConditionStatus::True);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Condition {
    /// The type in CamelCase: the key of the condition within its object.
    pub kind: String,
    /// Whether the condition holds.
    pub status: ConditionStatus,
    /// The reason as one CamelCase word, for programs; required by Kubernetes.
    pub reason: String,
    /// A sentence for users.
    pub message: String,
    /// The generation of the object that the condition refers to.
    pub observed_generation: Option<i64>,
    /// When the status last changed; set when the condition is written.
    pub last_transition_time: Option<Timestamp>,
}

impl Condition {
    /// Creates a condition of a type, with a reason as one CamelCase word.
    pub fn new(
        kind: impl Into<String>,
        status: impl Into<ConditionStatus>,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            kind: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: None,
        }
    }

    /// Sets the message, a sentence for users.
    #[must_use]
    pub fn message(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Sets the generation of the object that the condition refers to, instead of the one that the
    /// handler sees.
    #[must_use]
    pub fn observed_generation(self, generation: i64) -> Self {
        Self { observed_generation: Some(generation), ..self }
    }

    /// Whether the condition holds.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.status == ConditionStatus::True
    }

    /// Reads a condition from a JSON value; `None` if it has no type or no known status.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let status = match text("status")? {
            "True" => ConditionStatus::True,
            "False" => ConditionStatus::False,
            "Unknown" => ConditionStatus::Unknown,
            _ => return None,
        };
        Some(Self {
            kind: text("type")?.to_owned(),
            status,
            reason: text("reason").unwrap_or_default().to_owned(),
            message: text("message").unwrap_or_default().to_owned(),
            observed_generation: value.get("observedGeneration").and_then(Value::as_i64),
            last_transition_time: text("lastTransitionTime").and_then(|time| time.parse().ok()),
        })
    }

    /// Returns the condition written over the previous one, by Kubernetes' rules: the transition
    /// time changes only with the status, and unknown fields are kept.
    fn write_over(&self, former: Option<&Value>, now: Timestamp) -> Value {
        let status = self.status.as_str();
        let since = former
            .filter(|former| former.get("status").and_then(Value::as_str) == Some(status))
            .and_then(|former| former.get("lastTransitionTime"))
            .filter(|since| since.is_string())
            .cloned();
        let since = since.unwrap_or_else(|| {
            let moment = self.last_transition_time.unwrap_or(now);
            moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
        });
        let mut written = former.cloned().filter(Value::is_object).unwrap_or_else(|| json!({}));
        written["type"] = self.kind.as_str().into();
        written["status"] = status.into();
        written["reason"] = self.reason.as_str().into();
        written["message"] = self.message.as_str().into();
        written["lastTransitionTime"] = since;
        match (self.observed_generation, written.as_object_mut()) {
            (Some(generation), _) => written["observedGeneration"] = generation.into(),
            (None, Some(fields)) => {
                fields.shift_remove("observedGeneration");
            }
            (None, None) => {}
        }
        written
    }
}

/// A change of the condition of one type.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    /// Sets the condition at this time.
    Set(Condition, Timestamp),
    /// Replaces the whole condition with the given one.
    Put(Map<String, Value>),
    /// Changes some fields of the condition, as a merge patch.
    Merge(Map<String, Value>),
    /// Removes the condition.
    Remove,
}

/// Changes of conditions per type, in the order of the requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConditionChanges(Vec<(String, Change)>);

impl ConditionChanges {
    /// Whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The types that are changed.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(kind, _)| kind.as_str())
    }

    /// Sets a condition; its transition time becomes `now` if its status changes.
    pub fn set(&mut self, condition: Condition, now: Timestamp) {
        self.push(condition.kind.clone(), Change::Set(condition, now));
    }

    /// Removes the condition of a type.
    pub fn remove(&mut self, kind: &str) {
        self.push(kind.to_owned(), Change::Remove);
    }

    /// Adds later changes, which win where both concern the same type.
    pub fn absorb(&mut self, later: Self) {
        for (kind, change) in later.0 {
            self.push(kind, change);
        }
    }

    /// Discards all changes.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn push(&mut self, kind: String, change: Change) {
        let Change::Merge(fields) = change else {
            self.0.retain(|(known, _)| *known != kind);
            self.0.push((kind, change));
            return;
        };
        // At most two changes per type: one of the whole condition, then one of some fields.
        let last = self.0.iter_mut().rfind(|(known, _)| *known == kind);
        match last {
            Some((_, Change::Merge(known))) => merge::combine(known, fields),
            _ => self.0.push((kind, Change::Merge(fields))),
        }
    }

    /// The changes expressed by a whole list in a patch: its conditions are set, all others are
    /// kept.
    ///
    /// `None` if it is not a list of conditions with distinct types.
    #[must_use]
    pub fn of_list(list: &Value) -> Option<Self> {
        let conditions = by_type(list.as_array()?)?;
        let put = |(kind, fields): (&str, &Map<String, Value>)| {
            (kind.to_owned(), Change::Put(fields.clone()))
        };
        Some(Self(conditions.into_iter().map(put).collect()))
    }

    /// The changes from one list to another: types that are missing in `after` are removed.
    ///
    /// `None` if either is not a list of conditions with distinct types.
    #[must_use]
    pub fn between(before: &[Value], after: &[Value]) -> Option<Self> {
        let (before, after) = (by_type(before)?, by_type(after)?);
        let mut changes = Self::default();
        for (kind, _) in before.iter().filter(|(kind, _)| find(&after, kind).is_none()) {
            changes.remove(kind);
        }
        for (kind, fields) in &after {
            let change = match find(&before, kind) {
                Some(former) if former == *fields => continue,
                Some(former) => Change::Merge(shallow_difference(former, fields)),
                None => Change::Put((*fields).clone()),
            };
            changes.push((*kind).to_owned(), change);
        }
        Some(changes)
    }

    /// The list with all changes applied; `None` if they change nothing.
    #[must_use]
    pub fn applied_to(&self, known: Option<&Value>) -> Option<Value> {
        let mut list = known.and_then(Value::as_array).cloned().unwrap_or_default();
        for (kind, change) in &self.0 {
            apply(&mut list, kind, change);
        }
        let is_same = match known.and_then(Value::as_array) {
            Some(known) => *known == list,
            None => list.is_empty(),
        };
        (!is_same).then_some(Value::Array(list))
    }

    /// The types that both change differently.
    #[must_use]
    pub fn clashes(&self, other: &Self) -> Vec<String> {
        let mut kinds: Vec<String> = Vec::new();
        for kind in other.kinds() {
            let is_asked = self.kinds().any(|known| known == kind);
            if is_asked && !kinds.iter().any(|known| known == kind) && !self.agrees(other, kind) {
                kinds.push(kind.to_owned());
            }
        }
        kinds
    }

    fn agrees(&self, other: &Self, kind: &str) -> bool {
        let of = |changes: &Self| -> Vec<Change> {
            let own = changes.0.iter().filter(|(known, _)| known == kind);
            own.map(|(_, change)| match change {
                // The time of the change does not matter.
                Change::Set(condition, _) => Change::Set(condition.clone(), Timestamp::UNIX_EPOCH),
                other => other.clone(),
            })
            .collect()
        };
        of(self) == of(other)
    }
}

/// The condition of a type in a list.
#[must_use]
pub fn condition<'a>(list: &'a [Value], kind: &str) -> Option<&'a Value> {
    list.iter().find(|it| type_of(it) == Some(kind))
}

fn apply(list: &mut Vec<Value>, kind: &str, change: &Change) {
    let place = list.iter().position(|it| type_of(it) == Some(kind));
    let written = match change {
        Change::Remove => return list.retain(|it| type_of(it) != Some(kind)),
        Change::Put(fields) => Value::Object(fields.clone()),
        Change::Set(condition, now) => condition.write_over(place.map(|place| &list[place]), *now),
        Change::Merge(fields) => {
            let mut written = match place {
                Some(place) => list[place].clone(),
                None => json!({"type": kind}),
            };
            merge::apply(&mut written, fields);
            written
        }
    };
    match place {
        Some(place) => list[place] = written,
        None => list.push(written),
    }
}

fn type_of(condition: &Value) -> Option<&str> {
    condition.get("type").and_then(Value::as_str)
}

/// The conditions of a list by type; `None` if one has no type, or two have the same type.
fn by_type(list: &[Value]) -> Option<Vec<(&str, &Map<String, Value>)>> {
    let mut all: Vec<(&str, &Map<String, Value>)> = Vec::with_capacity(list.len());
    for condition in list {
        let (kind, fields) = (type_of(condition)?, condition.as_object()?);
        if find(&all, kind).is_some() {
            return None;
        }
        all.push((kind, fields));
    }
    Some(all)
}

fn find<'a>(all: &[(&str, &'a Map<String, Value>)], kind: &str) -> Option<&'a Map<String, Value>> {
    all.iter().find(|(known, _)| *known == kind).map(|(_, fields)| *fields)
}

/// The merge patch between two conditions; their fields are not nested.
fn shallow_difference(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Map<String, Value> {
    let removed = before.keys().filter(|key| !after.contains_key(*key));
    let mut changes: Map<String, Value> = removed.map(|key| (key.clone(), Value::Null)).collect();
    for (key, value) in after {
        if before.get(key) != Some(value) {
            changes.insert(key.clone(), value.clone());
        }
    }
    changes
}

#[cfg(test)]
mod tests;
