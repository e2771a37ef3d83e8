//! Derived rights are sufficient and minimal, and violations are detected.

use kopf_core::{HandlerKind, Output};
use kopf_engine::{Engine, EngineBuilder};
use serde_json::json;

use super::{least_privilege, with_derived_rights};
use crate::test_fixture::{greeter, handler, is_handled};
use crate::{World, WorldError};

async fn a_life(world: World) -> Result<(), WorldError> {
    world.operate(greeter).await;
    let greetings = world.objects("greetings.v1.kopf.dev");
    greetings.create(&json!({"metadata": {"name": "a"}, "spec": {"x": 1}})).await?;
    greetings.until("a", "the result", |it| it["status"]["create_fn"].is_object()).await?;
    greetings.patch("a", &json!({"spec": {"x": 2}})).await?;
    greetings.until("a", "the update", |it| it["status"]["update_fn"] == true).await?;
    greetings.delete("a").await?;
    greetings.until_gone("a").await
}

#[test]
fn a_whole_life_needs_all_derived_rights() {
    let rights = least_privilege(a_life);
    let rights: Vec<String> = rights.iter().map(ToString::to_string).collect();
    let wanted = [
        "list,patch,watch greetings.kopf.dev",
        "patch greetings/status.kopf.dev",
        "list,watch customresourcedefinitions.apiextensions.k8s.io",
    ];
    assert_eq!(rights, wanted);
}

#[test]
fn an_operator_works_with_its_derived_rights() {
    with_derived_rights(a_life);
}

/// Could write a status as far as known, but never does.
fn overdeclared() -> EngineBuilder {
    let mut create = handler("create_fn", HandlerKind::Create, |_| Ok(Output::Nothing));
    create.access.touches.events = false;
    Engine::builder(std::iter::once(create).collect())
}

#[test]
#[should_panic(expected = "the scenario does not need: patch greetings/status.kopf.dev")]
fn superfluous_rights_are_named() {
    least_privilege(async |world: World| {
        world.operate(overdeclared).await;
        let greetings = world.objects("greetings.v1.kopf.dev");
        greetings.create(&json!({"metadata": {"name": "a"}})).await?;
        greetings.until("a", "handling", is_handled).await.map(drop)
    });
}

/// Needs more than it declares.
fn undeclared() -> EngineBuilder {
    let spy = handler("spy", HandlerKind::Event, |call| {
        call.patch.lock().set(&"status.seen".into(), json!(true));
        Ok(Output::Nothing)
    });
    let touches = kopf_core::handler::Touches::nothing();
    let spy = kopf_core::Handler { access: touches.into(), ..spy };
    Engine::builder(std::iter::once(spy).collect())
}

#[test]
#[should_panic(expected = "the operator lacks rights")]
fn missing_rights_are_named() {
    with_derived_rights(async |world: World| {
        world.operate(undeclared).await;
        let greetings = world.objects("greetings.v1.kopf.dev");
        greetings.create(&json!({"metadata": {"name": "a"}})).await?;
        world.settled().await;
        Ok::<(), WorldError>(())
    });
}
