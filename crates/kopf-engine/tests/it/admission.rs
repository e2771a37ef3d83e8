//! Admission handlers between the embedded server and the engine's own HTTPS server.
//!
//! Sockets and a paused clock do not go together, so these tests run in real time.

use kopf_core::handler::{HandlerKind, WebhookOptions};
use kopf_core::invoke::{HandlerError, Output};
use kopf_core::occasion::Occasion;
use kopf_engine::{AdmissionEndpoint, EngineError};
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use serde_json::json;

use crate::world::{World, handler};

fn endpoint() -> AdmissionEndpoint {
    AdmissionEndpoint {
        address: ([127, 0, 0, 1], 0).into(),
        host: None,
        service: None,
        certificate: None,
        authority: None,
        managed: Some("my-operator.dev".into()),
    }
}

fn object(name: &str, spec: serde_json::Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {"name": name}, "spec": spec,
    }))
    .expect("an object")
}

#[tokio::test]
async fn objects_are_checked_and_changed_before_they_exist() {
    let world = World::new().await;
    let validate = handler("check", HandlerKind::Validate(WebhookOptions::default()), |call| {
        let Occasion::Admission(review) = &call.occasion else { return Ok(Output::Nothing) };
        if review.operation == "CREATE"
            && call.subject.expect("an object").object.value()["spec"]["size"] == 0
        {
            return Err(HandlerError::Denied { message: "too small".into(), code: 418 });
        }
        Ok(Output::Nothing)
    });
    let mutate = handler("complete", HandlerKind::Mutate(WebhookOptions::default()), |call| {
        call.patch.lock().set(&"spec.injected".into(), json!({"by": "us"}));
        Ok(Output::Nothing)
    });
    let builder = world.engine(vec![validate, mutate]).admission(endpoint());
    let engine = world.start_built(builder).await;
    let refused = world
        .api()
        .create(&PostParams::default(), &object("small", json!({"size": 0})))
        .await
        .expect_err("it is refused");
    assert!(refused.to_string().contains("too small"), "{refused}");
    let taken = world
        .api()
        .create(&PostParams::default(), &object("large", json!({"size": 9})))
        .await
        .expect("it is taken");
    assert_eq!(taken.data["spec"], json!({"size": 9, "injected": {"by": "us"}}));
    engine.stop().await.expect("a clean end");
    let configurations: Api<
        k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration,
    > = Api::all(world.client.clone());
    let left = configurations.list(&ListParams::default()).await.expect("configurations");
    assert!(left.items.iter().all(|it| it.webhooks.as_ref().is_none_or(Vec::is_empty)));
    world
        .api()
        .create(&PostParams::default(), &object("small", json!({"size": 0})))
        .await
        .expect("nobody checks any more");
}

#[tokio::test]
async fn admission_handlers_without_an_endpoint_are_a_mistake() {
    let world = World::new().await;
    let validate = world.noting("check", HandlerKind::Validate(WebhookOptions::default()));
    let engine = world.engine(vec![validate]).build();
    let error = engine.run(std::future::pending()).await.expect_err("it cannot start");
    assert!(matches!(error, EngineError::Admission(_)), "{error}");
}
