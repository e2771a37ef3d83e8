//! The interface of controllers: a consistent view of all objects, and the writes they request.
//!
//! Defines the types shared by reducers and their runner. Does not know how objects are stored or
//! how writes are executed. Reducers read a [`World`] (always one snapshot, so it is consistent)
//! and return an [`Outcome`], which the runner executes.

use std::ops::Deref;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::fields;
use crate::Stored;
use crate::stored::Packed;

/// A stored object, read as its JSON tree.
#[derive(Clone, Debug)]
pub struct Seen(pub Arc<Stored>);

impl Seen {
    /// An object as the store keeps it.
    pub fn of(packed: &Arc<Packed>) -> Self {
        Self(Arc::new(Stored::from(packed)))
    }
}

impl Deref for Seen {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.0.content()
    }
}

/// A collection of objects regardless of version: `pods`, `deployments.apps`.
///
/// Cheap to clone, since every key contains one.
#[derive(Clone, Debug)]
pub struct Collection(Name);

#[derive(Clone, Debug)]
enum Name {
    Fixed(&'static str),
    Shared(Arc<str>),
}

impl PartialEq for Collection {
    fn eq(&self, other: &Self) -> bool {
        self.table() == other.table()
    }
}

impl Eq for Collection {}

impl std::hash::Hash for Collection {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.table().hash(state);
    }
}

impl PartialOrd for Collection {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Collection {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.table().cmp(other.table())
    }
}

impl Collection {
    /// A built-in collection.
    pub const fn of(table: &'static str) -> Self {
        Self(Name::Fixed(table))
    }

    /// The collection with a table's name.
    pub fn of_table(table: &Arc<str>) -> Self {
        Self(Name::Shared(Arc::clone(table)))
    }

    /// The collection of a resource of a group.
    pub fn named(group: &str, plural: &str) -> Self {
        Self(Name::Shared(crate::status_error::qualified(plural, group).into()))
    }

    /// The name of the store's table.
    pub fn table(&self) -> &str {
        match &self.0 {
            Name::Fixed(table) => table,
            Name::Shared(table) => table,
        }
    }

    /// The plural name.
    pub fn plural(&self) -> &str {
        self.table().split_once('.').map_or(self.table(), |(plural, _)| plural)
    }

    /// The group, empty for the core group.
    pub fn group(&self) -> &str {
        self.table().split_once('.').map_or("", |(_, group)| group)
    }
}

/// A collection with its kind and scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The collection.
    pub collection: Collection,
    /// The kind of its objects.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// Identifies one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The collection of the object.
    pub collection: Collection,
    /// Its namespace, empty when it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// Creates a key from its parts.
    pub fn new(collection: Collection, namespace: &str, name: &str) -> Self {
        Self { collection, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The key of an object of `collection`.
    pub fn of(collection: Collection, object: &Value) -> Self {
        Self::new(collection, fields::namespace(object), fields::name(object))
    }
}

/// A consistent view of all stored objects.
pub trait World: Send + Sync {
    /// The object under `key`.
    fn get(&self, key: &Key) -> Option<Seen>;
    /// All objects of a collection, in one namespace or in all.
    fn list(&self, collection: &Collection, namespace: Option<&str>) -> Vec<Seen>;
    /// Every collection that can be listed and written.
    fn served(&self) -> Vec<Served>;
    /// The collection that serves a kind of a group.
    fn find_kind(&self, group: &str, kind: &str) -> Option<Served> {
        self.served()
            .into_iter()
            .find(|served| served.collection.group() == group && served.kind == kind)
    }
}

/// A change of one object: created if `old` is absent, deleted if `new` is absent.
#[derive(Clone, Debug)]
pub struct Change {
    /// The collection of the object.
    pub collection: Collection,
    /// The object before.
    pub old: Option<Seen>,
    /// The object after.
    pub new: Option<Seen>,
}

impl Change {
    /// The newest known state.
    pub fn object(&self) -> &Value {
        self.new
            .as_deref()
            .or(self.old.as_deref())
            .expect("a change has a state before or after it")
    }

    /// Whether the encoding of either state has this text.
    pub fn mentions(&self, text: &str) -> bool {
        [&self.old, &self.new].into_iter().flatten().any(|seen| seen.0.packed().mentions(text))
    }

    /// Whether the object is gone.
    pub fn is_removal(&self) -> bool {
        self.new.is_none()
    }
}

/// How dependents are treated when their owner is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// The owner is deleted first, the dependents later.
    Background,
    /// The dependents are deleted first.
    Foreground,
    /// The dependents are kept.
    Orphan,
}

impl Propagation {
    /// The name in delete options.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// A write that a controller requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Creates an object; it is not an error if it exists already.
    Create {
        /// The collection.
        collection: Collection,
        /// The object; namespace and name are in its metadata.
        object: Value,
    },
    /// Replaces an object or one of its subresources; its resourceVersion guards the write.
    Update {
        /// The object to replace.
        key: Key,
        /// The subresource written, empty for the object itself.
        subresource: &'static str,
        /// The whole new object.
        object: Value,
    },
    /// Merges a JSON merge patch into an object or one of its subresources.
    Patch {
        /// The object to patch.
        key: Key,
        /// The subresource written, empty for the object itself.
        subresource: &'static str,
        /// The merge patch.
        patch: Value,
    },
    /// Applies part of an object with force, taking it over from other managers.
    Apply {
        /// The object to apply to.
        key: Key,
        /// The subresource written, empty for the object itself.
        subresource: &'static str,
        /// The part, with the type and the name of the object.
        object: Value,
    },
    /// Binds a pod to a node.
    Bind {
        /// The pod.
        key: Key,
        /// The node's name.
        node: String,
    },
    /// Deletes an object; it is not an error if it is already gone.
    Delete {
        /// The object to delete.
        key: Key,
        /// The uid that it must have; empty for any.
        uid: String,
        /// The treatment of its dependents; `None` for the server's default.
        propagation: Option<Propagation>,
        /// The grace period in seconds; `None` for the server's default.
        grace_seconds: Option<i64>,
    },
}

impl Action {
    /// The object that it changes; `None` if it creates one.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Create { .. } => None,
            Self::Update { key, .. }
            | Self::Patch { key, .. }
            | Self::Apply { key, .. }
            | Self::Bind { key, .. }
            | Self::Delete { key, .. } => Some(key),
        }
    }
}

/// The result of one reconciliation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Writes, in order; the first failure ends the run, and the key is retried.
    pub actions: Vec<Action>,
    /// When to run again even if nothing changes.
    pub wake_at: Option<Timestamp>,
}

impl Outcome {
    /// Nothing to do.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Adds a write.
    pub fn push(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Schedules another run at `time`, unless an earlier one is already scheduled.
    pub fn wake(&mut self, time: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(time, |earlier| earlier.min(time)));
    }

    /// Applies one field of `object`, through a subresource.
    pub fn apply(&mut self, key: &Key, subresource: &'static str, object: &Value, field: &str) {
        let mut part = json!({
            "apiVersion": object["apiVersion"],
            "kind": object["kind"],
            "metadata": { "name": key.name },
        });
        part[field] = object[field].clone();
        self.push(Action::Apply { key: key.clone(), subresource, object: part });
    }

    /// Writes `status` to `object`, unless it is unchanged.
    pub fn put_status(&mut self, key: &Key, object: &Value, status: Value) {
        if object.get("status") != Some(&status) {
            let mut object = object.clone();
            fields::set(&mut object, &["status"], status);
            self.push(Action::Update { key: key.clone(), subresource: "status", object });
        }
    }
}

/// The changes that a controller receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Changes of these collections.
    Collections(Vec<Collection>),
    /// Changes of every collection, including those that are added later.
    Everything,
}

/// A named reducer. Implementations hold no state that they cannot rebuild from changes.
pub trait Controller: Send {
    /// The name in logs and in activity reports.
    fn name(&self) -> &'static str;
    /// The user name and field manager of its writes.
    fn identity(&self) -> (&'static str, &'static str) {
        ("system:kube-controller-manager", "kube-controller-manager")
    }
    /// The changes that it receives. At start, all existing objects are reported as created.
    fn interest(&self) -> Interest;
    /// The keys that are affected by a change.
    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key>;
    /// The keys to reconcile after something outside of the store has changed, such as stages.
    fn poked(&mut self, _world: &dyn World) -> Vec<Key> {
        Vec::new()
    }
    /// Whether it keeps no state from the changes that it has received.
    fn is_blank(&self) -> bool {
        true
    }
    /// Compares the actual with the desired state and returns the necessary writes.
    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome;
}
