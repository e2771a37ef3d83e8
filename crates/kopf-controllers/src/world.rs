//! What a controller may see and do: a consistent view of all objects, and the writes it asks for.
//!
//! Owns the vocabulary between reducers and their runner. Refuses to know how objects are stored
//! or how writes travel. Reducers read a [`World`] (always one snapshot, hence never stale against
//! itself) and return an [`Outcome`]; the runner executes it.

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

/// Names one collection of objects regardless of version: `pods`, `deployments.apps`.
///
/// Clones are cheap, since every key carries one.
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

/// One collection and what the server knows about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// Which collection.
    pub collection: Collection,
    /// The kind of its objects.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// Points at one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Where it is kept.
    pub collection: Collection,
    /// Its namespace, empty when it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// A key from its parts.
    pub fn new(collection: Collection, namespace: &str, name: &str) -> Self {
        Self { collection, namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The key of an object of `collection`.
    pub fn of(collection: Collection, object: &Value) -> Self {
        Self::new(collection, fields::namespace(object), fields::name(object))
    }
}

/// One consistent view of everything that is stored.
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

/// One change of one object: created without `old`, deleted without `new`.
#[derive(Clone, Debug)]
pub struct Change {
    /// Where the object is kept.
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

    /// Whether the object is gone now.
    pub fn is_removal(&self) -> bool {
        self.new.is_none()
    }
}

/// How dependents are treated when their owner is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Owner first, dependents later.
    Background,
    /// Dependents first.
    Foreground,
    /// Dependents stay.
    Orphan,
}

impl Propagation {
    /// As written in delete options.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// One write that a controller asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Creates an object; one that exists already is fine.
    Create {
        /// Where.
        collection: Collection,
        /// What; namespace and name are in its metadata.
        object: Value,
    },
    /// Replaces an object or one of its subresources; its resourceVersion guards the write.
    Update {
        /// Which.
        key: Key,
        /// The subresource written, empty for the object itself.
        subresource: &'static str,
        /// The whole new object.
        object: Value,
    },
    /// Merges a JSON merge patch into an object or one of its subresources.
    Patch {
        /// Which.
        key: Key,
        /// The subresource written, empty for the object itself.
        subresource: &'static str,
        /// The merge patch.
        patch: Value,
    },
    /// Applies a part of an object, and takes it over from other managers.
    Apply {
        /// Which.
        key: Key,
        /// The subresource written, empty for the object itself.
        subresource: &'static str,
        /// The part, with the type and the name of the object.
        object: Value,
    },
    /// Gives a pod its node.
    Bind {
        /// Which pod.
        key: Key,
        /// The node's name.
        node: String,
    },
    /// Deletes an object; one that is gone already is fine.
    Delete {
        /// Which.
        key: Key,
        /// The uid it must still have; empty for any.
        uid: String,
        /// What happens to its dependents; `None` leaves the choice to the server.
        propagation: Option<Propagation>,
        /// Seconds of grace; `None` leaves the choice to the server.
        grace_seconds: Option<i64>,
    },
}

impl Action {
    /// The object that it changes; none if it creates one.
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

/// What one reconciliation wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Writes, in order; the first that fails ends the run and the key is retried.
    pub actions: Vec<Action>,
    /// When to look again even if nothing changes.
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

    /// Asks to look again at `time`, or earlier if that was asked already.
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

    /// Writes `status` into `object`, unless it is there already.
    pub fn put_status(&mut self, key: &Key, object: &Value, status: Value) {
        if object.get("status") != Some(&status) {
            let mut object = object.clone();
            fields::set(&mut object, &["status"], status);
            self.push(Action::Update { key: key.clone(), subresource: "status", object });
        }
    }
}

/// What a controller wants to hear about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Changes of these collections.
    Collections(Vec<Collection>),
    /// Changes of every collection, also of those that appear later.
    Everything,
}

/// A reducer with a name. Implementations hold no state that they cannot rebuild from changes.
pub trait Controller: Send {
    /// Name in logs and in activity reports.
    fn name(&self) -> &'static str;
    /// As whom it writes: user name and field manager.
    fn identity(&self) -> (&'static str, &'static str) {
        ("system:kube-controller-manager", "kube-controller-manager")
    }
    /// What it hears about. On start, everything that exists is told as created.
    fn interest(&self) -> Interest;
    /// The keys that a change concerns.
    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key>;
    /// The keys to look at after something outside of the world changed, such as stages.
    fn poked(&mut self, _world: &dyn World) -> Vec<Key> {
        Vec::new()
    }
    /// Whether it remembers nothing of the changes that it was told.
    fn is_blank(&self) -> bool {
        true
    }
    /// Compares what is with what should be.
    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome;
}
