//! Operators that depend only on the newest state survive; others are detected.

use std::sync::atomic::{AtomicUsize, Ordering};

use kopf_core::{HandlerKind, Output};
use kopf_engine::{Engine, EngineBuilder};
use serde_json::json;

use super::{Torture, torture};
use crate::test_fixture::{greeter, handler, is_handled};
use crate::{World, WorldError};

async fn a_life(world: World) -> Result<(), WorldError> {
    world.operate(greeter).await;
    let greetings = world.objects("greetings.v1.kopf.dev");
    for name in ["a", "b"] {
        greetings.create(&json!({"metadata": {"name": name}, "spec": {"x": 1}})).await?;
    }
    greetings.until("a", "handling", is_handled).await?;
    greetings.patch("a", &json!({"spec": {"x": 2}})).await?;
    greetings.until("a", "the update", |it| it["status"]["update_fn"] == true).await?;
    greetings.delete("b").await?;
    greetings.until_gone("b").await
}

#[test]
fn the_engine_survives() {
    torture(60, a_life);
}

/// Counts its calls in memory, which is wrong after any crash.
fn forgetful() -> EngineBuilder {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    CALLS.store(0, Ordering::SeqCst);
    let create = handler("create_fn", HandlerKind::Create, |_| {
        Ok(Output::Json(json!(CALLS.fetch_add(1, Ordering::SeqCst))))
    });
    Engine::builder(std::iter::once(create).collect())
}

async fn two_births(world: World) -> Result<(), WorldError> {
    world.operate(forgetful).await;
    let greetings = world.objects("greetings.v1.kopf.dev");
    for name in ["a", "b"] {
        greetings.create(&json!({"metadata": {"name": name}})).await?;
        greetings.until(name, "the result", |it| it["status"]["create_fn"].is_number()).await?;
    }
    Ok(())
}

#[test]
#[should_panic(expected = "run only it with KOPF_TORTURE_SEED=")]
fn state_in_memory_is_detected() {
    torture(60, two_births);
}

#[test]
fn differing_fields_can_be_ignored() {
    Torture::new(20).ignoring("status.create_fn").run(two_births);
}
