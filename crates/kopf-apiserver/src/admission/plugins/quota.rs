//! ResourceQuotas: rejects writes that exceed a namespace's quota.
//!
//! Usage is counted from the existing objects whenever it is needed. Concurrent writes that wait
//! for the disk do not see each other, so together they can exceed a quota.

use kopf_kinds::quota::{amounts, charge, is_in_scopes, missing, usage};

use super::refusal;
use crate::StatusError;
use crate::admission::{AdmissionRequest, Operation};
use crate::fields::at;
use crate::quantity::Quantity;
use crate::store::Snapshot;

/// The table of quotas.
pub(super) const QUOTAS: &str = "resourcequotas";

/// The amounts that a write adds to the usage of one quota.
pub(crate) struct Charge {
    /// The name of the quota.
    pub(crate) quota: String,
    /// The amounts by resource.
    pub(crate) amounts: Vec<(String, Quantity)>,
}

/// Rejects a write that exceeds the remaining quota; returns the write's charges.
pub(in crate::admission) fn check(
    snapshot: &Snapshot,
    request: &AdmissionRequest<'_>,
) -> Result<Vec<Charge>, StatusError> {
    let is_counted = match request.operation {
        Operation::Create => true,
        // Services may change their ports, and claims may grow.
        Operation::Update => {
            matches!(&*request.resource.table, "services" | "persistentvolumeclaims")
        }
        Operation::Delete => false,
    };
    let Some(object) = request.object.as_ref() else { return Ok(Vec::new()) };
    if !is_counted || !request.subresource.is_empty() || !request.resource.namespaced {
        return Ok(Vec::new());
    }
    let mut charges = Vec::new();
    let table = &*request.resource.table;
    let needed = charge(table, object);
    let had = request.old_object.as_ref().map(|old| charge(table, old)).unwrap_or_default();
    for (_, quota) in snapshot.list(QUOTAS, request.namespace) {
        let hard = amounts(at(quota.content(), &["spec", "hard"]));
        if !is_in_scopes(quota.content(), table, object) {
            continue;
        }
        if let Some(missing) = missing(table, object, &hard) {
            let problem = format!("failed quota: {}: must specify {missing}", quota.name());
            return Err(refusal(request, &problem));
        }
        let used = usage(quota.content(), |table, visit| {
            let all = snapshot.list(table, request.namespace);
            all.for_each(|(_, object)| visit(object.content()));
        });
        let mut exceeded: [Vec<String>; 3] = Default::default();
        let mut amounts = Vec::new();
        for (name, limit) in &hard {
            let Some(more) = needed.get(name) else { continue };
            let before = had.get(name).map_or(0, |amount| amount.nanos());
            let delta = more.nanos() - before;
            if delta != 0 {
                let less = had.get(name).map_or(Quantity::count(0), |amount| amount.negated());
                amounts.push((name.clone(), more.plus(less)));
            }
            let present = used.get(name).copied().unwrap_or(Quantity::count(0));
            if delta > 0 && present.nanos() + delta > limit.nanos() {
                for (list, amount) in exceeded.iter_mut().zip([more, &present, limit]) {
                    list.push(format!("{name}={}", amount.canonical()));
                }
            }
        }
        if !exceeded[0].is_empty() {
            let [requested, used, limited] = exceeded.map(|list| list.join(","));
            let problem = format!(
                "exceeded quota: {}, requested: {requested}, used: {used}, limited: {limited}",
                quota.name()
            );
            return Err(refusal(request, &problem));
        }
        if !amounts.is_empty() {
            charges.push(Charge { quota: quota.name().to_owned(), amounts });
        }
    }
    Ok(charges)
}
