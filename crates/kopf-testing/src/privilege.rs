//! Proofs about rights: an operator gets by with what is derived from its handlers, and needs it all.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use kopf_core::rights::Right;
use serde_json::json;

use crate::ending::{Ending, panic_text};
use crate::snapshot::OURS;
use crate::world::{NAMESPACE, OPERATOR, Rights, World, in_world};

/// How often to look whether something was refused.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// How long a scenario may go on without a right before its end is taken as a success.
const RBAC: &str = "rbac.authorization.k8s.io";

/// Runs a test in a world with RBAC, where the operator may do exactly what is derived from its
/// handlers.
///
/// # Panics
/// Panics when the test fails, and when the operator was refused anything.
pub fn guarded<E: Ending>(test: impl AsyncFnOnce(World) -> E) {
    in_world(Rights::Own, None, async |world: World| {
        let ended = test(world.clone()).await.into_text();
        world.dismiss().await;
        let forbidden = world.forbidden();
        assert!(forbidden.is_empty(), "the operator lacks rights:\n{forbidden}");
        if let Err(error) = ended {
            panic!("{error}");
        }
    });
}

/// Proves that the rights derived from an operator's handlers are enough for a scenario, and that
/// none of them is superfluous: without any single verb the operator is refused something.
///
/// The scenario starts the operator with [`World::operate`]. Returns the rights.
///
/// # Panics
/// Panics when the scenario fails with all the rights, and when it gets by without one of them.
pub fn least_privilege<E: Ending>(scenario: impl AsyncFn(World) -> E) -> Vec<Right> {
    let rights = in_world(Rights::Own, None, async |world: World| {
        let outcome = attempt(&scenario, &world).await;
        if let Err(failure) = outcome {
            panic!("the scenario fails with all derived rights: {failure}");
        }
        world.0.granted.lock().clone()
    });
    let mut superfluous = Vec::new();
    for (number, right) in rights.iter().enumerate() {
        for (position, verb) in right.verbs.iter().enumerate() {
            let without = Rights::OwnWithout(number, position);
            let outcome = in_world(without, None, async |world| attempt(&scenario, &world).await);
            if outcome.is_ok() {
                superfluous.push(Right { verbs: vec![verb.clone()], ..right.clone() }.to_string());
            }
        }
    }
    assert!(superfluous.is_empty(), "the scenario does not need: {}", superfluous.join("; "));
    rights
}

/// Runs the scenario to its end, or until the operator is refused something.
async fn attempt<E: Ending>(
    scenario: &impl AsyncFn(World) -> E,
    world: &World,
) -> Result<(), String> {
    let ended = AssertUnwindSafe(scenario(world.clone())).catch_unwind();
    let ended = tokio::select! {
        ended = ended => ended,
        refusal = refusal(world) => return Err(refusal),
    };
    match ended.map(Ending::into_text) {
        Ok(Ok(_)) => {}
        Ok(Err(failure)) => return Err(failure),
        Err(panic) => return Err(panic_text(&*panic)),
    }
    // What is done at the end of an operator counts, too.
    world.dismiss().await;
    let forbidden = world.forbidden();
    if forbidden.is_empty() { Ok(()) } else { Err(forbidden.to_string()) }
}

async fn refusal(world: &World) -> String {
    loop {
        let forbidden = world.forbidden();
        if !forbidden.is_empty() {
            return format!("the operator was refused:\n{forbidden}");
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Makes the operator's account, and lets it do what the world allows.
pub(crate) async fn grant(world: &World, rights: &[Right]) {
    let rules: Vec<_> = rights
        .iter()
        .enumerate()
        .map(|(number, right)| {
            let is_kept = |position: usize| world.0.rights != Rights::OwnWithout(number, position);
            let verbs = right.verbs.iter().enumerate();
            let verbs: Vec<_> =
                verbs.filter(|(at, _)| is_kept(*at)).map(|(_, verb)| verb).collect();
            let names: Vec<_> = right.name.iter().collect();
            json!({
                "apiGroups": [right.group], "resources": [right.resource],
                "resourceNames": names, "verbs": verbs,
            })
        })
        .filter(|rule| rule["verbs"] != json!([]))
        .collect();
    if world.0.rights == Rights::All {
        return;
    }
    let metadata = json!({"name": OPERATOR, "labels": {OURS: "true"}});
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata.clone()});
    let role = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole",
        "metadata": metadata.clone(), "rules": rules,
    });
    let binding = json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": OPERATOR},
        "subjects": [{"kind": "ServiceAccount", "name": OPERATOR, "namespace": NAMESPACE}],
    });
    for document in [account, role, binding] {
        world.apply(&document).await.expect("an administrator may grant rights");
    }
}

#[cfg(test)]
mod tests;
