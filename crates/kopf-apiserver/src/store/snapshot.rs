//! All objects at one version, persistent: a clone is O(1), a change copies one path.

use std::sync::Arc;

use imbl::OrdMap;

use crate::Stored;

/// The key of an object within its table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectKey {
    /// The namespace, empty for cluster-scoped objects.
    pub(crate) namespace: Arc<str>,
    /// The name.
    pub(crate) name: Arc<str>,
}

impl ObjectKey {
    /// A key from borrowed parts.
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// The objects of one resource.
pub(crate) type Table = OrdMap<ObjectKey, Arc<Stored>>;

/// Every object of the server at one version.
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
        self.table(table)?.get(&ObjectKey::new(namespace, name)).cloned()
    }

    /// The objects of a table in key order; an empty namespace means all.
    pub(crate) fn list<'a>(
        &'a self,
        table: &str,
        namespace: &str,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Stored>)> + use<'a> {
        self.list_from(table, namespace, None)
    }

    /// Like `list`, but only keys after `after`.
    pub(crate) fn list_from<'a>(
        &'a self,
        table: &str,
        namespace: &str,
        after: Option<&ObjectKey>,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Stored>)> + use<'a> {
        use std::ops::Bound;
        let start = match after {
            Some(key) => Bound::Excluded(key.clone()),
            None => Bound::Included(ObjectKey::new(namespace, "")),
        };
        let namespace = namespace.to_owned();
        self.table(table)
            .map(|table| table.range((start, Bound::Unbounded)))
            .into_iter()
            .flatten()
            .take_while(move |(key, _)| namespace.is_empty() || *key.namespace == *namespace)
    }

    pub(super) fn with(
        &self,
        table: &Arc<str>,
        key: ObjectKey,
        stored: Arc<Stored>,
        resource_version: u64,
    ) -> Self {
        let mut objects = self.tables.get(table).cloned().unwrap_or_default();
        objects.insert(key, stored);
        Self { resource_version, tables: self.tables.update(Arc::clone(table), objects) }
    }

    pub(super) fn without(&self, table: &Arc<str>, key: &ObjectKey, resource_version: u64) -> Self {
        let mut objects = self.tables.get(table).cloned().unwrap_or_default();
        objects.remove(key);
        Self { resource_version, tables: self.tables.update(Arc::clone(table), objects) }
    }
}
