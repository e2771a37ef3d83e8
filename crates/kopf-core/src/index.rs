//! The entries of one in-memory index, by key and by the objects that they come from.
//!
//! Written by the engine as objects change, read by handlers at any time.
//!
//! Values are opaque, keys are JSON and not a trait with hash and equality: those of another language
//! may need its interpreter, which the tasks of the engine never wait for, and they may fail under
//! the lock of the index. A front end with other keys keeps its own map from them to numbers, and
//! gives the numbers as keys (`python/kopf/_engine/indexes.py`).

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use kopf_model::ObjectKey;
use parking_lot::RwLock;
use serde_json::Value;

use crate::invoke::{IndexView, Output};

/// One entry of an object: its key in the index, and the value.
pub type Entry = (Value, Shared);

/// A value as shared by all handlers.
type Shared = Arc<dyn Any + Send + Sync>;

/// One index.
#[derive(Default)]
pub struct Index(RwLock<Inner>);

#[derive(Default)]
struct Inner {
    /// By the text of the key; the values are in insertion order.
    stores: HashMap<String, Store>,
    /// The key texts of every object, so that replacing is cheap.
    keys: HashMap<ObjectKey, Vec<String>>,
}

struct Store {
    key: Value,
    values: Vec<(ObjectKey, Shared)>,
}

impl Index {
    /// Replaces the entries of an object.
    pub fn replace(&self, object: &ObjectKey, entries: Vec<Entry>) {
        let mut inner = self.0.write();
        let former = inner.discard(object);
        let mut keys = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let text = key.to_string();
            let store = inner
                .stores
                .entry(text.clone())
                .or_insert_with(|| Store { key, values: Vec::new() });
            store.values.push((object.clone(), value));
            keys.push(text);
        }
        if !keys.is_empty() {
            inner.keys.insert(object.clone(), keys);
        }
        drop(inner);
        drop_values(former);
    }

    /// Drops all entries of an object.
    pub fn discard(&self, object: &ObjectKey) {
        let former = self.0.write().discard(object);
        drop_values(former);
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.read().stores.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Inner {
    /// Removes the values of an object, which must be dropped without holding the lock.
    fn discard(&mut self, object: &ObjectKey) -> Vec<Shared> {
        let mut former = Vec::new();
        for text in self.keys.remove(object).unwrap_or_default() {
            if let Some(store) = self.stores.get_mut(&text) {
                let values = store.values.extract_if(.., |(owner, _)| owner == object);
                former.extend(values.map(|(_, value)| value));
                if store.values.is_empty() {
                    self.stores.remove(&text);
                }
            }
        }
        former
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        for store in std::mem::take(&mut self.0.get_mut().stores).into_values() {
            drop_values(store.values.into_iter().map(|(_, value)| value));
        }
    }
}

/// Drops user values one by one: their destructors may access the index, and one that panics must
/// do no further harm. The panic hook reports it.
fn drop_values(values: impl IntoIterator<Item = Shared>) {
    for value in values {
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(value)));
    }
}

impl IndexView for Index {
    fn get(&self, key: &Value) -> Vec<Arc<dyn Any + Send + Sync>> {
        let inner = self.0.read();
        let store = inner.stores.get(&key.to_string());
        store.map_or_else(Vec::new, |store| {
            store.values.iter().map(|(_, value)| Arc::clone(value)).collect()
        })
    }

    fn count(&self, key: &Value) -> usize {
        self.0.read().stores.get(&key.to_string()).map_or(0, |store| store.values.len())
    }

    fn keys(&self) -> Vec<Value> {
        self.0.read().stores.values().map(|store| store.key.clone()).collect()
    }
}

/// The entries of a handler's result: every member of a map under its key, any other value under
/// the key null; `None` if there is no result and the previous entries are kept.
///
/// Values of JSON results have the type [`Value`].
#[must_use]
pub fn entries(output: Output) -> Option<Vec<Entry>> {
    match output {
        Output::Nothing | Output::Json(Value::Null) => None,
        Output::Json(Value::Object(members)) => {
            let entry = |(key, value)| (Value::String(key), Arc::new(value) as Arc<_>);
            Some(members.into_iter().map(entry).collect())
        }
        Output::Json(other) => Some(vec![(Value::Null, Arc::new(other))]),
        Output::Entries(entries) => Some(entries),
        Output::Opaque(value) => Some(vec![(Value::Null, value)]),
    }
}

#[cfg(test)]
mod tests;
