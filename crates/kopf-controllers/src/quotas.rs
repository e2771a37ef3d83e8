//! Reports how much of a ResourceQuota is used.
//!
//! Fidelity: `status.hard` and `status.used` same as upstream, counted from the existing objects.
//! The server itself adds the objects that it admits, so there is usually nothing to correct.

use jiff::Timestamp;
use kopf_kinds::quota;
use serde_json::{Map, Value, json};

use super::collections::QUOTAS;
use super::fields::{self, at};
use super::world::{Change, Collection, Controller, Interest, Key, Outcome, Seen, World};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Quotas;

impl Controller for Quotas {
    fn name(&self) -> &'static str {
        "resourcequota"
    }

    fn interest(&self) -> Interest {
        Interest::Everything
    }

    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key> {
        let object = change.object();
        if change.collection == QUOTAS {
            // The server itself updates the status before it stores the objects that it counts.
            let limits = |seen: &Seen| at(seen, &["spec", "hard"]).cloned();
            let is_same = match (&change.old, &change.new) {
                (Some(old), Some(new)) => limits(old) == limits(new),
                _ => false,
            };
            return if is_same { Vec::new() } else { vec![Key::of(QUOTAS, object)] };
        }
        let namespace = fields::namespace(object);
        if namespace.is_empty() {
            return Vec::new();
        }
        let quotas = world.list(&QUOTAS, Some(namespace));
        quotas.iter().map(|quota| Key::of(QUOTAS, quota)).collect()
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, _now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let Some(quota) = world.get(key) else { return outcome };
        let used = quota::usage(&quota, |table, visit| {
            let collection = Collection::of_table(&table.into());
            world.list(&collection, Some(&key.namespace)).iter().for_each(|object| visit(object));
        });
        let used: Map<String, Value> =
            used.into_iter().map(|(name, amount)| (name, json!(amount.canonical()))).collect();
        let hard = at(&quota, &["spec", "hard"]).cloned().unwrap_or_else(|| json!({}));
        outcome.put_status(key, &quota, json!({ "hard": hard, "used": used }));
        outcome
    }
}
