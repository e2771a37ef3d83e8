//! Finds the changes between two snapshots.
//!
//! The cost depends on the number of changes, not of objects, since shared parts of persistent maps
//! are skipped as a whole.

use std::sync::Arc;

use imbl::ordmap::DiffItem;

use super::snapshot::{Snapshot, Table};
use crate::stored::Packed;

/// The states of one object before and after a change.
pub(crate) type Difference<'a> = (Option<&'a Arc<Packed>>, Option<&'a Arc<Packed>>);

impl Snapshot {
    /// The tables that differ from those of a newer snapshot.
    pub(crate) fn changed_tables(&self, newer: &Self) -> Vec<Arc<str>> {
        newer
            .tables()
            .filter(|(name, table)| {
                self.table(name).is_none_or(|older| !older.objects().ptr_eq(table.objects()))
            })
            .map(|(name, _)| Arc::clone(name))
            .collect()
    }

    /// Calls `each` with the old and the new state of every object of a table that differs in a
    /// newer snapshot.
    pub(crate) fn each_change(
        &self,
        newer: &Self,
        table: &str,
        each: &mut dyn FnMut(Difference<'_>),
    ) {
        let nothing = Table::default();
        let before = self.table(table).unwrap_or(&nothing);
        let after = newer.table(table).unwrap_or(&nothing);
        for item in before.objects().diff(after.objects()) {
            match item {
                DiffItem::Add(_, new) => each((None, Some(new))),
                DiffItem::Update { old: (_, old), new: (_, new) } => each((Some(old), Some(new))),
                DiffItem::Remove(_, old) => each((Some(old), None)),
            }
        }
    }
}
