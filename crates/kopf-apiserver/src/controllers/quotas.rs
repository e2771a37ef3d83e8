//! Reports how much of a ResourceQuota is used.
//!
//! Fidelity: `status.hard` and `status.used` as upstream, counted from what exists. Admission
//! counts for itself, so that this report may lag behind.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::fields::{self, at};
use super::kinds::QUOTAS;
use super::world::{Change, Collection, Controller, Interest, Key, Outcome, World};
use crate::admission::quota_usage;

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
            return vec![Key::of(QUOTAS, object)];
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
        let used = quota_usage(&quota, |table, visit| {
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
