//! All objects at one version, as a persistent structure: a clone is O(1), a change copies shared
//! parts.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use equivalent::{Comparable, Equivalent};
use imbl::OrdMap;

use crate::Stored;
use crate::stored::Packed;

/// The key of an object within its table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectKey {
    /// The namespace, empty for cluster-scoped objects.
    pub(crate) namespace: Arc<str>,
    /// The name.
    pub(crate) name: Arc<str>,
}

impl ObjectKey {
    /// Creates a key from borrowed parts.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The borrowed form of the key, for lookups.
    pub(super) fn borrowed(&self) -> KeyRef<'_> {
        KeyRef { namespace: &self.namespace, name: &self.name }
    }
}

/// A borrowed key for lookups, ordered like [`ObjectKey`].
#[derive(Clone, Copy)]
pub(super) struct KeyRef<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

impl Equivalent<ObjectKey> for KeyRef<'_> {
    fn equivalent(&self, key: &ObjectKey) -> bool {
        self.compare(key).is_eq()
    }
}

impl Comparable<ObjectKey> for KeyRef<'_> {
    fn compare(&self, key: &ObjectKey) -> Ordering {
        (self.namespace, self.name).cmp(&(&*key.namespace, &*key.name))
    }
}

/// The objects of one resource.
#[derive(Clone, Default)]
pub(crate) struct Table {
    objects: OrdMap<ObjectKey, Arc<Packed>>,
    // The number of objects in each namespace, so that pages know the remaining number without
    // counting.
    sizes: OrdMap<Arc<str>, usize>,
}

impl Table {
    /// The number of objects.
    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are no objects.
    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// All objects in key order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<Packed>)> {
        self.objects.iter()
    }

    pub(super) fn objects(&self) -> &OrdMap<ObjectKey, Arc<Packed>> {
        &self.objects
    }

    /// Adds or replaces an object; keys in one namespace share its name.
    fn insert(&mut self, mut key: ObjectKey, packed: Arc<Packed>) {
        if let Some((shared, _)) = self.sizes.get_key_value(&key.namespace) {
            key.namespace = Arc::clone(shared);
        }
        let namespace = Arc::clone(&key.namespace);
        if self.objects.insert(key, packed).is_none() {
            *self.sizes.entry(namespace).or_insert(0) += 1;
        }
    }

    fn remove(&mut self, key: &ObjectKey) {
        if self.objects.remove(key).is_none() {
            return;
        }
        let left = self.sizes.get(&key.namespace).map_or(0, |size| size.saturating_sub(1));
        if left == 0 {
            self.sizes.remove(&key.namespace);
        } else {
            self.sizes.insert(Arc::clone(&key.namespace), left);
        }
    }
}

/// All objects of the server at one version.
#[derive(Clone)]
pub(crate) struct Snapshot {
    resource_version: u64,
    tables: OrdMap<Arc<str>, Table>,
}

impl Snapshot {
    /// A state without objects.
    pub(crate) fn empty(resource_version: u64) -> Self {
        Self { resource_version, tables: OrdMap::new() }
    }

    /// The version of the last change in this state.
    pub(crate) fn resource_version(&self) -> u64 {
        self.resource_version
    }

    /// Sets the version of this state.
    pub(super) fn set_resource_version(&mut self, resource_version: u64) {
        self.resource_version = resource_version;
    }

    /// Removes all objects that are newer than a version.
    pub(super) fn forget_newer(&mut self, resource_version: u64) {
        let newer = |packed: &Packed| packed.resource_version() > resource_version;
        let found = self.tables.iter().flat_map(|(table, objects)| {
            let found = objects.iter().filter(|(_, packed)| newer(packed));
            found.map(|(key, _)| (Arc::clone(table), key.clone()))
        });
        for (table, key) in found.collect::<Vec<_>>() {
            self.remove(&table, &key, resource_version);
        }
    }

    /// The objects of a table, `resource` or `resource.group`.
    pub(crate) fn table(&self, table: &str) -> Option<&Table> {
        self.tables.get(table)
    }

    /// Every table with its key.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&Arc<str>, &Table)> {
        self.tables.iter()
    }

    /// One object.
    pub(crate) fn get(&self, table: &str, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        let packed = self.packed(table, KeyRef { namespace, name })?;
        Some(Arc::new(Stored::from(packed)))
    }

    /// One object in its stored form.
    pub(super) fn packed(&self, table: &str, key: KeyRef<'_>) -> Option<&Arc<Packed>> {
        self.table(table)?.objects.get(&key)
    }

    /// The number of objects in a table; an empty namespace means all.
    pub(crate) fn count(&self, table: &str, namespace: &str) -> usize {
        let Some(table) = self.table(table) else { return 0 };
        if namespace.is_empty() {
            return table.len();
        }
        table.sizes.get(namespace).copied().unwrap_or(0)
    }

    /// The objects of a table in key order; an empty namespace means all.
    pub(crate) fn list<'a>(
        &'a self,
        table: &str,
        namespace: &str,
    ) -> impl Iterator<Item = (&'a ObjectKey, Arc<Stored>)> + use<'a> {
        self.list_from(table, namespace, None)
    }

    /// Like `list`, but only keys after `after`.
    pub(crate) fn list_from<'a>(
        &'a self,
        table: &str,
        namespace: &str,
        after: Option<&ObjectKey>,
    ) -> impl Iterator<Item = (&'a ObjectKey, Arc<Stored>)> + use<'a> {
        let start = match after {
            Some(key) => Bound::Excluded(key.clone()),
            None => Bound::Included(ObjectKey::new(namespace, "")),
        };
        let namespace = namespace.to_owned();
        let mut objects =
            self.table(table).map(|table| table.objects.range((start, Bound::Unbounded)));
        std::iter::from_fn(move || {
            let (key, packed) = objects.as_mut()?.next()?;
            let is_inside = namespace.is_empty() || *key.namespace == *namespace;
            is_inside.then(|| (key, Arc::new(Stored::from(packed))))
        })
    }

    /// Adds or replaces an object as the change of this version.
    pub(super) fn put(
        &mut self,
        table: &Arc<str>,
        key: ObjectKey,
        packed: Arc<Packed>,
        resource_version: u64,
    ) {
        self.resource_version = resource_version;
        match self.tables.get_mut(table) {
            Some(objects) => objects.insert(key, packed),
            None => {
                let mut objects = Table::default();
                objects.insert(key, packed);
                self.tables.insert(Arc::clone(table), objects);
            }
        }
    }

    /// Removes an object as the change of this version.
    pub(super) fn remove(&mut self, table: &Arc<str>, key: &ObjectKey, resource_version: u64) {
        self.resource_version = resource_version;
        if let Some(objects) = self.tables.get_mut(table) {
            objects.remove(key);
        }
    }
}
