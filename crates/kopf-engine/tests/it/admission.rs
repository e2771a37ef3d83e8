//! Admission handlers between the embedded server and the engine's own HTTPS server.
//!
//! Sockets and a paused clock are incompatible, so these tests run in real time.

use base64::Engine as _;
use http::Method;
use http_body_util::BodyExt as _;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kopf_core::handler::{HandlerKind, WebhookOptions};
use kopf_core::invoke::{Call, HandlerError, Output};
use kopf_core::occasion::Occasion;
use kopf_engine::{AdmissionEndpoint, EngineError};
use kopf_model::Selector;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;

use crate::logged::Logged;
use crate::proxy::{Fault, Rule};
use crate::webhooks::{CertificateFiles, a_minute_passes, endpoint};
use crate::world::{World, handler};

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
    let counted = engine.status().snapshot().handlers;
    assert_eq!((counted["check"].successes, counted["check"].failures), (1, 1));
    assert_eq!(counted["complete"].successes, 2);
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

/// Adds a text to the memo of the call's object, and returns all texts in it.
fn note_in_memo(call: &Call, text: String) -> Vec<String> {
    let memo = call.memo.get_or_insert_with(Mutex::<Vec<String>>::default);
    let mut notes = memo.lock();
    notes.push(text);
    notes.clone()
}

#[tokio::test]
async fn reviews_share_the_memo_of_their_object() {
    let world = World::new().await;
    let check = handler("check", HandlerKind::Validate(WebhookOptions::default()), |call| {
        let Occasion::Admission(review) = &call.occasion else { return Ok(Output::Nothing) };
        let size = &call.subject.as_ref().expect("an object").object.value()["spec"]["size"];
        let text = format!("{} {size}", review.operation);
        note_in_memo(&call, text);
        Ok(Output::Nothing)
    });
    let tell = |id: &'static str, kind| {
        let calls = world.calls.clone();
        handler(id, kind, move |call| {
            let mut notes = note_in_memo(&call, id.into());
            notes.dedup();
            calls.note(notes.join(", "));
            Ok(Output::Nothing)
        })
    };
    let created = tell("created", HandlerKind::Create);
    let updated = tell("updated", HandlerKind::Update);
    let builder = world.engine(vec![check, created, updated]).admission(endpoint());
    let engine = world.start_built(builder).await;
    world.create("a", json!({"size": 1})).await;
    world.until_handled("a").await;
    world.merge("a", json!({"spec": {"size": 2}})).await;
    world.until_handled("a").await;
    // The engine's own record of the creation is a write that is reviewed too.
    let expected = ["created", "created, UPDATE 1, UPDATE 2, updated"];
    assert_eq!(world.calls.all(), expected);
    engine.stop().await.expect("a clean end");
}

/// Calls a webhook as the cluster would: over HTTPS, with the authority from the configuration.
async fn ask(webhook: &serde_json::Value, operation: &str, object: &DynamicObject) -> Answer {
    let config = &webhook["clientConfig"];
    let bundle = config["caBundle"].as_str().expect("an authority");
    let bundle = base64::engine::general_purpose::STANDARD.decode(bundle).expect("base64");
    let authority = CertificateDer::from_pem_slice(&bundle).expect("a certificate");
    let url: http::Uri = config["url"].as_str().expect("a URL").parse().expect("a URL");
    let path = url.path().to_owned();
    let mut client = kube::Config::new(url.clone());
    client.cluster_url =
        format!("https://{}", url.authority().expect("a host")).parse().expect("valid");
    client.root_cert = Some(vec![authority.to_vec()]);
    let client = kube::Client::try_from(client).expect("a client");
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": operation, "userInfo": {"username": "me"}, "object": object,
            "resource": {"group": "kopf.dev", "version": "v1", "resource": "kopfexamples"},
        },
    });
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(review.to_string().into_bytes().into()).expect("a request");
    let response = client.send(request).await.expect("an answer");
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (code, serde_json::from_slice(&body).expect("JSON"))
}

type Answer = (u16, serde_json::Value);

#[tokio::test]
async fn t7_reviews_are_answered_to_the_byte() {
    let world = World::new().await;
    let validate = handler("check", HandlerKind::Validate(WebhookOptions::default()), |_| {
        Err(HandlerError::Denied { message: "too small".into(), code: 499 })
    });
    let mutate = handler("complete", HandlerKind::Mutate(WebhookOptions::default()), |call| {
        call.warnings.as_ref().expect("a review").lock().push("be careful".into());
        let mut patch = call.patch.lock();
        patch.set(&"spec.n".into(), json!(null));
        patch.set(&"spec.injected".into(), json!({"by": "us"}));
        Ok(Output::Nothing)
    });
    let builder = world.engine(vec![validate, mutate]).admission(endpoint());
    let engine = world.start_built(builder).await;
    let object = object("a", json!({"n": 1}));
    let (code, denied) = ask(&webhooks(&world).await[0], "CREATE", &object).await;
    let expected = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {
            "uid": "1", "allowed": false, "status": {"message": "too small", "code": 499},
        },
    });
    assert_eq!((code, denied), (200, expected));
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(world.client.clone());
    let mutating = mutating.get("my-operator.dev").await.expect("a configuration");
    let mutating = serde_json::to_value(&mutating.webhooks.expect("webhooks")[0]).expect("JSON");
    let (code, changed) = ask(&mutating, "CREATE", &object).await;
    let patch = r#"[{"op":"remove","path":"/spec/n"},{"op":"add","path":"/spec/injected","value":{"by":"us"}}]"#;
    let expected = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {
            "uid": "1", "allowed": true, "warnings": ["be careful"],
            "patch": base64::engine::general_purpose::STANDARD.encode(patch),
            "patchType": "JSONPatch",
        },
    });
    assert_eq!((code, changed), (200, expected));
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_denial_is_not_an_error() {
    let (logged, _guard) = Logged::everything();
    let world = World::new().await;
    let engine = world.start_built(world.engine(vec![refusing()]).admission(endpoint())).await;
    let refused = world.api().create(&PostParams::default(), &object("a", json!({}))).await;
    assert!(refused.expect_err("it is refused").to_string().contains("never"));
    engine.stop().await.expect("a clean end");
    let line = logged.line_with("denied the request with code 418: never");
    assert!(line.contains("INFO"), "{line}");
    assert_eq!(logged.count("ERROR"), 0);
}

#[tokio::test]
async fn only_configurations_with_handlers_are_created_and_old_ones_are_emptied() {
    let world = World::new().await;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(world.client.clone());
    let start =
        || async { world.start_built(world.engine(vec![refusing()]).admission(endpoint())).await };
    let engine = start().await;
    assert!(mutating.get_opt("my-operator.dev").await.expect("an answer").is_none());
    engine.stop().await.expect("a clean end");
    assert!(mutating.get_opt("my-operator.dev").await.expect("an answer").is_none());
    // As left behind by a version of the operator that had such a handler and was killed.
    let old = json!({
        "metadata": {"name": "my-operator.dev"},
        "webhooks": [{
            "name": "old.my-operator.dev", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1:1/old"},
        }],
    });
    let old = serde_json::from_value(old).expect("a configuration");
    mutating.create(&PostParams::default(), &old).await.expect("it is created");
    let engine = start().await;
    let emptied = mutating.get("my-operator.dev").await.expect("it is still there");
    assert_eq!(emptied.webhooks.unwrap_or_default().len(), 0);
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn admission_handlers_without_an_endpoint_are_a_mistake() {
    let world = World::new().await;
    let validate = world.noting("check", HandlerKind::Validate(WebhookOptions::default()));
    let engine = world.engine(vec![validate]).build();
    let error = engine.run(std::future::pending()).await.expect_err("it cannot start");
    assert!(matches!(error, EngineError::Admission(_)), "{error}");
}

type Validating = k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;

async fn webhooks(world: &World) -> serde_json::Value {
    let api: Api<Validating> = Api::all(world.client.clone());
    let found = api.get("my-operator.dev").await.expect("a configuration");
    serde_json::to_value(found.webhooks.unwrap_or_default()).expect("JSON")
}

/// Waits in real time.
async fn until(what: &str, world: &World, is_it: impl Fn(&serde_json::Value) -> bool) {
    for _ in 0..1000 {
        if is_it(&webhooks(world).await) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen: {:#}", webhooks(world).await);
}

fn refusing() -> kopf_core::Handler {
    handler("check", HandlerKind::Validate(WebhookOptions::default()), |_| {
        Err(HandlerError::Denied { message: "never".into(), code: 418 })
    })
}

#[tokio::test]
async fn webhooks_follow_later_resources() {
    let world = World::bare();
    let builder = world.engine(vec![refusing()]).admission(endpoint());
    let engine = world.start_built(builder).await;
    until("the empty rules", &world, |it| it[0]["rules"].as_array().is_none_or(Vec::is_empty))
        .await;
    world.create_crd(false).await;
    until("the rules", &world, |it| it[0]["rules"][0]["resources"] == json!(["kopfexamples"]))
        .await;
    let refused = world.api().create(&PostParams::default(), &object("a", json!({}))).await;
    assert!(refused.expect_err("it is refused").to_string().contains("never"));
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn services_are_reached_at_their_own_port() {
    let world = World::new().await;
    let service = Some(("operators".to_owned(), "demo".to_owned()));
    let endpoint = AdmissionEndpoint { service, ..endpoint() };
    let engine = world.start_built(world.engine(vec![refusing()]).admission(endpoint)).await;
    let told = webhooks(&world).await[0]["clientConfig"]["service"].clone();
    let port = kopf_core::endpoint::SERVICE_PORT;
    let expected =
        json!({"namespace": "operators", "name": "demo", "path": "/check", "port": port});
    assert_eq!(told, expected);
    engine.stop().await.expect("a clean end");
}

/// Otherwise an operator that is down could block its own Pods and Leases.
#[tokio::test]
async fn webhooks_of_built_in_resources_leave_out_the_namespace_of_the_operator() {
    let world = World::new().await;
    let service = Some(("operators".to_owned(), "demo".to_owned()));
    let endpoint = AdmissionEndpoint { service, ..endpoint() };
    let custom = refusing();
    let pods = kopf_core::Handler { id: "pods".into(), ..refusing() };
    let pods = pods.for_resources(Selector::exact("", "v1", "pods"));
    let engine = world.start_built(world.engine(vec![custom, pods]).admission(endpoint)).await;
    let selectors = |told: &serde_json::Value| {
        let of = |name: &str| {
            let webhooks = told.as_array().expect("webhooks");
            let is_it = |it: &&serde_json::Value| it["name"] == format!("{name}.my-operator.dev");
            webhooks.iter().find(is_it).expect("the webhook")["namespaceSelector"].clone()
        };
        (of("check"), of("pods"))
    };
    let own = json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["operators"]},
    ]});
    until("the exception", &world, |told| selectors(told) == (json!({}), own.clone())).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn persistent_webhooks_stay_also_where_configurations_cannot_be_read() {
    let world = World::new().await;
    // As with the rights in Kopf's documentation: create and patch.
    world.journal.add_rule(Rule {
        method: Some(Method::GET),
        path: "webhookconfigurations",
        watches: None,
        times: usize::MAX,
        fault: Fault::Answer(403, None),
    });
    let options = WebhookOptions { persistent: true, ..WebhookOptions::default() };
    let kept = world.noting("kept", HandlerKind::Validate(options));
    let builder = world.engine(vec![kept, refusing()]).admission(endpoint());
    let engine = world.start_built(builder).await;
    until("both webhooks", &world, |it| it.as_array().is_some_and(|all| all.len() == 2)).await;
    engine.stop().await.expect("a clean end");
    let left = webhooks(&world).await;
    let names: Vec<_> =
        left.as_array().into_iter().flatten().map(|it| it["name"].clone()).collect();
    assert_eq!(names, [json!("kept.my-operator.dev")]);
}

#[tokio::test]
async fn a_renewed_certificate_is_used() {
    let world = World::new().await;
    let files = CertificateFiles::new("admission");
    let endpoint = AdmissionEndpoint { certificate: Some(files.certificate()), ..endpoint() };
    let engine = world.start_built(world.engine(vec![refusing()]).admission(endpoint)).await;
    let before = webhooks(&world).await;
    files.renew();
    a_minute_passes().await;
    let bundle = |it: &serde_json::Value| it[0]["clientConfig"]["caBundle"].clone();
    until("the renewal", &world, |it| bundle(it) != bundle(&before)).await;
    let refused = world.api().create(&PostParams::default(), &object("a", json!({}))).await;
    let refused = refused.expect_err("it is refused").to_string();
    assert!(refused.contains("never"), "over the new certificate: {refused}");
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn reviews_whose_callbacks_panic_fail_with_a_reason() {
    let (logged, _guard) = Logged::warnings();
    let world = World::new().await;
    let mut check =
        handler("check", HandlerKind::Validate(WebhookOptions::default()), |_| Ok(Output::Nothing));
    check.filters.when = Some(std::sync::Arc::new(|subject, _| {
        assert_ne!(subject.object.name(), "a", "a bug of the filter");
        Ok(true)
    }));
    let mutate = handler("complete", HandlerKind::Mutate(WebhookOptions::default()), |call| {
        if call.subject.expect("an object").object.name() == "b" {
            call.patch.lock().transform(|_| panic!("no such list"));
        }
        Ok(Output::Nothing)
    });
    let builder = world.engine(vec![check, mutate]).admission(endpoint());
    let engine = world.start_built(builder).await;
    for (name, reason) in [("a", "a bug of the filter"), ("b", "no such list")] {
        let refused = world
            .api()
            .create(&PostParams::default(), &object(name, json!({})))
            .await
            .expect_err("it is refused");
        assert!(refused.to_string().contains(reason), "{refused}");
        assert!(logged.line_with(reason).contains("ERROR"));
    }
    world.api().create(&PostParams::default(), &object("c", json!({}))).await.expect("taken");
    engine.stop().await.expect("a clean end");
}
