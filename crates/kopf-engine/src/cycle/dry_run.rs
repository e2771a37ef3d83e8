//! The part of a cycle that reports what would be done about children, instead of doing it.

use bytes::Bytes;
use kopf_client::Failure;
use kopf_core::desired::{Child, Manifest, Plan, Step};

use super::Cycle;
use super::desired::target;
use crate::children::rehearsal::{Action, Proposal, difference};

/// What would be done about the children of one handler.
pub(super) async fn rehearse(
    cycle: &Cycle,
    manifests: &[Manifest],
    observed: &[Child],
    plan: Plan,
) -> Vec<Proposal> {
    let mut proposals = Vec::new();
    let mut readiness = plan.readiness;
    for step in plan.steps {
        let (key, action) = match step {
            Step::Apply(number) => {
                let manifest = &manifests[number];
                (manifest.key.clone(), propose_child(cycle, manifest, manifests, observed).await)
            }
            Step::Delete(deletion) => (deletion.key, Action::Delete),
            Step::Refuse { key, message } => (key, Action::Refuse(message)),
        };
        readiness.remove(&key);
        proposals.push(Proposal { child: key.to_string(), action });
    }
    let kept = readiness
        .into_iter()
        .map(|(key, state)| Proposal { child: key.to_string(), action: Action::Keep(state) });
    proposals.extend(kept);
    proposals
}

async fn propose_child(
    cycle: &Cycle,
    manifest: &Manifest,
    all: &[Manifest],
    observed: &[Child],
) -> Action {
    let body = Bytes::from(manifest.value.to_string());
    let target = target(&manifest.resource, &manifest.key);
    let known = observed.iter().find(|child| child.key() == manifest.key);
    match (cycle.shared.cluster.rehearse(target, body).await, known) {
        (Ok(_), None) => Action::Create,
        (Ok(after), Some(before)) => {
            Action::Change(difference(before.object.value(), after.value()))
        }
        // Its namespace would be created first.
        (Err(error), None) if error.failure == Failure::NotFound && is_planned(manifest, all) => {
            Action::Create
        }
        (Err(error), _) => Action::Refuse(error.message.to_string()),
    }
}

fn is_planned(manifest: &Manifest, all: &[Manifest]) -> bool {
    let namespace = manifest.key.namespace.as_deref();
    all.iter().any(|other| other.key.kind == "Namespace" && Some(&*other.key.name) == namespace)
}
