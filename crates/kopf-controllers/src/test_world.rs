//! An in-memory world for testing reducers without a server.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::fields;
use super::world::{Action, Change, Collection, Controller, Key, Outcome, Seen, Served, World};
use crate::Stored;

/// Objects by key, and the kinds that exist.
#[derive(Clone, Default)]
pub(crate) struct TestWorld {
    objects: BTreeMap<Key, Seen>,
    served: Vec<Served>,
    version: u64,
}

impl TestWorld {
    /// Adds a kind.
    pub(crate) fn serve(&mut self, collection: Collection, kind: &str, namespaced: bool) {
        self.served.push(Served { collection, kind: kind.to_owned(), namespaced });
    }

    /// Stores an object and returns the change.
    pub(crate) fn put(&mut self, collection: &Collection, mut object: Value) -> Change {
        self.version += 1;
        let version = Value::from(self.version.to_string());
        fields::set(&mut object, &["metadata", "resourceVersion"], version);
        let key = Key::of(collection.clone(), &object);
        let new = Seen(Arc::new(Stored::new(object, self.version)));
        let old = self.objects.insert(key, new.clone());
        Change { collection: collection.clone(), old, new: Some(new) }
    }

    /// Removes an object and returns the change.
    pub(crate) fn take(&mut self, key: &Key) -> Change {
        let old = self.objects.remove(key).expect("the test removes what it has put");
        Change { collection: key.collection.clone(), old: Some(old), new: None }
    }
}

impl World for TestWorld {
    fn get(&self, key: &Key) -> Option<Seen> {
        self.objects.get(key).cloned()
    }

    fn list(&self, collection: &Collection, namespace: Option<&str>) -> Vec<Seen> {
        self.objects
            .iter()
            .filter(|(key, _)| key.collection == *collection)
            .filter(|(key, _)| namespace.is_none_or(|namespace| namespace == key.namespace))
            .map(|(_, object)| object.clone())
            .collect()
    }

    fn served(&self) -> Vec<Served> {
        self.served.clone()
    }
}

/// The fixed time of all reducer tests.
pub(crate) fn noon() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().expect("a valid time")
}

/// Passes a change to a controller and reconciles all affected keys.
pub(crate) fn react(
    controller: &mut dyn Controller,
    change: &Change,
    world: &TestWorld,
) -> Vec<Outcome> {
    controller
        .concerned(change, world)
        .iter()
        .map(|key| controller.reconcile(key, world, noon()))
        .collect()
}

/// The actions in short form: `delete pods/ns/name`, `patch deployments.apps/ns/name`.
pub(crate) fn describe(outcomes: &[Outcome]) -> Vec<String> {
    let at = |key: &Key| format!("{}/{}/{}", key.collection.table(), key.namespace, key.name);
    let sub = |name: &str| if name.is_empty() { String::new() } else { format!("/{name}") };
    outcomes
        .iter()
        .flat_map(|outcome| &outcome.actions)
        .map(|action| match action {
            Action::Create { collection, object } => {
                format!("create {}", at(&Key::of(collection.clone(), object)))
            }
            Action::Update { key, subresource, .. } => {
                format!("update {}{}", at(key), sub(subresource))
            }
            Action::Patch { key, subresource, patch } => {
                format!("patch {}{} {patch}", at(key), sub(subresource))
            }
            Action::Apply { key, subresource, object } => {
                format!("apply {}{} {object}", at(key), sub(subresource))
            }
            Action::Bind { key, node } => format!("bind {} to {node}", at(key)),
            Action::Delete { key, propagation, .. } => {
                let policy = propagation.map_or("default", |policy| policy.as_str());
                format!("delete {} {policy}", at(key))
            }
        })
        .collect()
}

/// Executes actions and runs controllers until nothing changes: a minimal server.
///
/// Supports generateName, uids, generation, finalizers, status, binding and merge patches; no
/// validation, no defaults, no grace periods.
pub(crate) struct Simulation {
    pub(crate) world: TestWorld,
    pub(crate) now: Timestamp,
    controllers: Vec<Box<dyn Controller>>,
    pending: Vec<Change>,
    wakes: Vec<(Timestamp, usize, Key)>,
    names: u64,
}

impl Simulation {
    pub(crate) fn new(controllers: Vec<Box<dyn Controller>>) -> Self {
        Self {
            world: TestWorld::default(),
            now: noon(),
            controllers,
            pending: Vec::new(),
            wakes: Vec::new(),
            names: 0,
        }
    }

    /// Stores an object as a user would create it.
    pub(crate) fn create(&mut self, collection: &Collection, mut object: Value) {
        self.names += 1;
        let number = self.names;
        if fields::name(&object).is_empty() {
            let prefix = fields::text(&object, &["metadata", "generateName"]).to_owned();
            fields::set(&mut object, &["metadata", "name"], format!("{prefix}{number}").into());
        }
        fields::set(&mut object, &["metadata", "uid"], format!("uid-{number}").into());
        fields::set(&mut object, &["metadata", "generation"], 1.into());
        let created = fields::stamp(self.now);
        fields::set(&mut object, &["metadata", "creationTimestamp"], created.into());
        let change = self.world.put(collection, object);
        self.pending.push(change);
    }

    /// The object under a key.
    pub(crate) fn read(&self, collection: &Collection, namespace: &str, name: &str) -> Value {
        let key = Key::new(collection.clone(), namespace, name);
        self.world.get(&key).map(|seen| (*seen).clone()).unwrap_or(Value::Null)
    }

    /// Replaces an object as a user would.
    pub(crate) fn update(&mut self, collection: &Collection, object: Value) {
        let key = Key::of(collection.clone(), &object);
        let old = self.world.get(&key).expect("the test updates what exists");
        let mut object = object;
        if old.get("spec") != object.get("spec") {
            let generation = fields::number(&old, &["metadata", "generation"]).unwrap_or(0) + 1;
            fields::set(&mut object, &["metadata", "generation"], generation.into());
        }
        let is_gone = fields::is_deleting(&object) && fields::finalizers(&object).is_empty();
        let change = self.world.put(collection, object);
        self.pending.push(change);
        if is_gone {
            let change = self.world.take(&key);
            self.pending.push(change);
        }
    }

    /// Deletes an object as a user would.
    pub(crate) fn delete(&mut self, key: &Key, finalizer: Option<&str>) {
        let Some(object) = self.world.get(key) else { return };
        let mut object = (*object).clone();
        if let Some(finalizer) = finalizer {
            let mut finalizers = fields::items(&object, &["metadata", "finalizers"]).to_vec();
            finalizers.push(finalizer.into());
            fields::set(&mut object, &["metadata", "finalizers"], finalizers.into());
        }
        if fields::finalizers(&object).is_empty() {
            let change = self.world.take(key);
            self.pending.push(change);
        } else {
            let now = fields::stamp(self.now);
            fields::set(&mut object, &["metadata", "deletionTimestamp"], now.into());
            fields::set(&mut object, &["metadata", "deletionGracePeriodSeconds"], 0.into());
            self.update(&key.collection, object);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Create { collection, object } => {
                if self.world.get(&Key::of(collection.clone(), &object)).is_none() {
                    self.create(&collection, object);
                }
            }
            Action::Update { key, object, .. } => {
                let Some(present) = self.world.get(&key) else { return };
                let version = ["metadata", "resourceVersion"];
                if fields::text(&present, &version) == fields::text(&object, &version) {
                    self.update(&key.collection, object);
                }
            }
            // There is no field ownership here: apply is a merge.
            Action::Patch { key, patch, .. } | Action::Apply { key, object: patch, .. } => {
                let Some(present) = self.world.get(&key) else { return };
                let mut object = (*present).clone();
                kopf_apimachinery::patch::merge::apply(&mut object, &patch);
                self.update(&key.collection, object);
            }
            Action::Bind { key, node } => {
                let Some(present) = self.world.get(&key) else { return };
                let mut object = (*present).clone();
                fields::set(&mut object, &["spec", "nodeName"], node.into());
                self.update(&key.collection, object);
            }
            Action::Delete { key, uid, propagation, .. } => {
                let is_same = self
                    .world
                    .get(&key)
                    .is_some_and(|found| uid.is_empty() || fields::uid(&found) == uid);
                let finalizer = match propagation {
                    Some(super::world::Propagation::Foreground) => Some("foregroundDeletion"),
                    Some(super::world::Propagation::Orphan) => Some("orphan"),
                    _ => None,
                };
                if is_same {
                    self.delete(&key, finalizer);
                }
            }
        }
    }

    /// Runs until nothing is left to do at the current time.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            let mut tasks: Vec<(usize, Key)> = Vec::new();
            for change in std::mem::take(&mut self.pending) {
                for (index, controller) in self.controllers.iter_mut().enumerate() {
                    let is_heard = match controller.interest() {
                        super::world::Interest::Everything => true,
                        super::world::Interest::Collections(list) => {
                            list.contains(&change.collection)
                        }
                    };
                    if is_heard {
                        let keys = controller.concerned(&change, &self.world);
                        tasks.extend(keys.into_iter().map(|key| (index, key)));
                    }
                }
            }
            let now = self.now;
            let (due, later): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.wakes).into_iter().partition(|(time, _, _)| *time <= now);
            self.wakes = later;
            tasks.extend(due.into_iter().map(|(_, index, key)| (index, key)));
            tasks.sort();
            tasks.dedup();
            if tasks.is_empty() {
                return;
            }
            for (index, key) in tasks {
                let outcome = self.controllers[index].reconcile(&key, &self.world, self.now);
                for action in outcome.actions {
                    self.perform(action);
                }
                if let Some(wake_at) = outcome.wake_at {
                    self.wakes.push((wake_at, index, key));
                }
            }
        }
        panic!("the controllers never came to rest");
    }

    /// Moves the clock and settles.
    pub(crate) fn advance(&mut self, seconds: i64) {
        self.now = fields::after_seconds(self.now, seconds);
        self.settle();
    }
}
