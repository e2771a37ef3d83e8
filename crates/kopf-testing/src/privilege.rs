//! Tests of rights: an operator works with the rights derived from its handlers, and needs all of
//! them.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use kopf_core::rights::Right;

use crate::account::Rights;
use crate::scenario_result::{ScenarioResult, panic_text};
use crate::world::{World, in_world};

/// How often to check whether a request was forbidden.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Runs a test in a world with RBAC, where the operator has exactly the rights derived from its
/// handlers.
///
/// # Panics
/// Panics if the test fails, or if any request of the operator was forbidden.
pub fn with_derived_rights<E: ScenarioResult>(test: impl AsyncFnOnce(World) -> E) {
    in_world(Rights::Own, None, async |world: World| {
        let ended = test(world.clone()).await.into_text();
        world.stop_operators().await;
        let forbidden = world.forbidden();
        assert!(forbidden.is_empty(), "the operator lacks rights:\n{forbidden}");
        if let Err(error) = ended {
            panic!("{error}");
        }
    });
}

/// Proves that the rights derived from an operator's handlers are enough for a scenario, and that
/// none of them is superfluous: without any single verb, some request of the operator is forbidden.
///
/// The scenario starts the operator with [`World::operate`]. Returns the rights.
///
/// # Panics
/// Panics if the scenario fails with all the rights, or if it works without one of them.
pub fn least_privilege<E: ScenarioResult>(scenario: impl AsyncFn(World) -> E) -> Vec<Right> {
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

/// Runs the scenario until it ends or a request of the operator is forbidden.
async fn attempt<E: ScenarioResult>(
    scenario: &impl AsyncFn(World) -> E,
    world: &World,
) -> Result<(), String> {
    let ended = AssertUnwindSafe(scenario(world.clone())).catch_unwind();
    let ended = tokio::select! {
        ended = ended => ended,
        refusal = refusal(world) => return Err(refusal),
    };
    match ended.map(ScenarioResult::into_text) {
        Ok(Ok(_)) => {}
        Ok(Err(failure)) => return Err(failure),
        Err(panic) => return Err(panic_text(&*panic)),
    }
    // Requests of an operator while it stops count too.
    world.stop_operators().await;
    let forbidden = world.forbidden();
    if forbidden.is_empty() { Ok(()) } else { Err(forbidden.to_string()) }
}

async fn refusal(world: &World) -> String {
    loop {
        let forbidden = world.forbidden();
        if !forbidden.is_empty() {
            return format!("the operator was refused:\n{forbidden}");
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests;
