//! The objects that exist before the first request: namespaces, a node, a storage class, roles.
//!
//! Their encodings are in a file, which the tests compute from the definitions and compare: computing
//! them at the start, with schemas and managed fields, would take longer than everything else.

#[cfg(test)]
mod definitions;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use crate::clock::{Clock, IdSource};
use crate::meta::format_time;
use crate::store::{ObjectKey, Store, StoreLimits};
use crate::stored::Template;

/// One object per line: its table, namespace, name and encoding, separated by spaces.
const INITIAL_OBJECTS: &str = include_str!("../data/initial-objects.txt");

/// An initial object, without its uid and times.
struct Prepared {
    table: Arc<str>,
    key: ObjectKey,
    template: Template,
}

/// Creates a store with the initial objects and without history.
pub(super) fn create(
    limits: StoreLimits,
    first_version: u64,
    clock: &dyn Clock,
    ids: &dyn IdSource,
    nodes: bool,
) -> Store {
    // They are the same for all servers of a process.
    static PREPARED: LazyLock<Vec<Prepared>> = LazyLock::new(prepare);
    let now = format_time(clock.now());
    let prepared = PREPARED.iter().filter(|prepared| nodes || *prepared.table != *"nodes");
    let objects = prepared.zip(first_version + 1..).map(|(prepared, version)| {
        let Prepared { table, key, template } = prepared;
        (Arc::clone(table), key.clone(), Arc::new(template.fill(&ids.uid(), version, &now)))
    });
    Store::with_objects(limits, first_version, objects)
}

fn prepare() -> Vec<Prepared> {
    let mut table: Arc<str> = Arc::default();
    let prepared = INITIAL_OBJECTS.lines().map(|line| {
        let mut parts = line.splitn(4, ' ');
        let mut part = || parts.next().expect("lines have four parts");
        let (name_of_table, namespace, name, encoding) = (part(), part(), part(), part());
        if *table != *name_of_table {
            table = name_of_table.into();
        }
        let key = ObjectKey::new(namespace, name);
        Prepared { table: Arc::clone(&table), key, template: Template::new(encoding) }
    });
    prepared.collect()
}
