//! Conversions: reviews as the cluster sends them, and the definitions that refer to us.
//!
//! Sockets and a paused clock are incompatible, so these tests run in real time.

use base64::Engine as _;
use http_body_util::BodyExt as _;
use kopf_core::handler::{ConvertOptions, Handler, HandlerKind};
use kopf_core::invoke::{Call, HandlerError, Output, Returned};
use kopf_engine::{AdmissionEndpoint, EngineError};
use kopf_model::Selector;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::webhooks::{CertificateFiles, a_minute_passes, endpoint};
use crate::world::{World, crd, handler};

const NAME: &str = "kopfexamples.kopf.dev";

fn conversion(
    (from, to): (&str, &str),
    function: impl Fn(Call) -> Returned + Send + Sync + 'static,
) -> Handler {
    let of = |version| Selector::exact("kopf.dev", version, "kopfexamples");
    let options = ConvertOptions { to: of(to), definition: None };
    let id = format!("{from}-{to}");
    let handler = handler(&id, HandlerKind::Convert(options), function);
    handler.for_resources(of(from))
}

/// Records its name in the spec.
fn noting(from: &'static str, to: &'static str) -> Handler {
    conversion((from, to), move |call| {
        let subject = call.subject.expect("an object");
        assert_eq!(subject.resource.version, from, "the resource is that of the object");
        let mut spec = subject.object.value()["spec"].clone();
        let path = spec["path"].as_str().unwrap_or_default().to_owned();
        spec["path"] = format!("{path}>{to}").into();
        Ok(Output::Json(json!({"metadata": {"name": "another"}, "spec": spec})))
    })
}

fn object(version: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("kopf.dev/{version}"), "kind": "KopfExample",
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": "web"}},
        "spec": {"path": version}, "status": {"done": true},
    })
}

fn converted(version: &str, name: &str, path: &str) -> Value {
    let mut object = object(version, name);
    object["spec"]["path"] = path.into();
    object
}

async fn definition(world: &World) -> Value {
    let definition = world.crds().get(NAME).await.expect("a definition");
    serde_json::to_value(definition).expect("JSON")
}

async fn client_config(world: &World) -> Value {
    definition(world).await["spec"]["conversion"]["webhook"]["clientConfig"].clone()
}

/// Sends a review as the cluster would: over HTTPS, with the authority from the definition.
async fn ask(config: &Value, path: Option<&str>, review: &Value) -> (u16, Value) {
    let bundle = config["caBundle"].as_str().expect("an authority");
    let bundle = base64::engine::general_purpose::STANDARD.decode(bundle).expect("base64");
    let authority = CertificateDer::from_pem_slice(&bundle).expect("a certificate");
    let url: http::Uri = config["url"].as_str().expect("a URL").parse().expect("a URL");
    let mut client = kube::Config::new(url.clone());
    client.cluster_url =
        format!("https://{}", url.authority().expect("a host")).parse().expect("valid");
    client.root_cert = Some(vec![authority.to_vec()]);
    let client = kube::Client::try_from(client).expect("a client");
    let request = http::Request::post(path.unwrap_or(url.path()));
    let request = request.header("content-type", "application/json");
    let request = request.body(review.to_string().into_bytes().into()).expect("a request");
    let response = client.send(request).await.expect("an answer");
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

fn review(to: &str, objects: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "7", "desiredAPIVersion": format!("kopf.dev/{to}"), "objects": objects},
    })
}

fn answer(objects: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {"uid": "7", "convertedObjects": objects, "result": {"status": "Success"}},
    })
}

/// An engine with these conversions responds to a review; returns the message of the failure.
async fn refused(conversions: Vec<Handler>, to: &str, objects: &[Value]) -> String {
    let world = World::new().await;
    let engine = world.start_built(world.engine(conversions).admission(endpoint())).await;
    let (code, answer) = ask(&client_config(&world).await, None, &review(to, objects)).await;
    engine.stop().await.expect("a clean end");
    assert_eq!(code, 200, "{answer}");
    let response = &answer["response"];
    assert_eq!(response["uid"], "7");
    assert_eq!(response["convertedObjects"], json!([]));
    assert_eq!(response["result"]["status"], "Failed");
    response["result"]["message"].as_str().expect("a message").to_owned()
}

#[tokio::test]
async fn objects_are_converted_in_order_over_the_shortest_way() {
    let world = World::new().await;
    let conversions = vec![noting("v1", "v2"), noting("v2", "v3"), noting("v3", "v1")];
    let engine = world.start_built(world.engine(conversions).admission(endpoint())).await;
    let config = client_config(&world).await;
    let objects = [object("v1", "a"), object("v3", "b"), object("v2", "c"), object("v1", "d")];
    let expected = [
        converted("v3", "a", "v1>v2>v3"),
        object("v3", "b"),
        converted("v3", "c", "v2>v3"),
        converted("v3", "d", "v1>v2>v3"),
    ];
    for path in [None, Some("/"), Some("/convert")] {
        let answered = ask(&config, path, &review("v3", &objects)).await;
        assert_eq!(answered, (200, answer(&expected)), "{path:?}");
    }
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn a_missing_route_fails_with_advice() {
    let message = refused(vec![noting("v1", "v2")], "v3", &[object("v1", "a")]).await;
    assert_eq!(
        message,
        "KopfExample default/a cannot be converted to kopf.dev/v3: no conversions lead from v1 to \
         v3, but from v1 to v2: add a handler with `#[kopf::on::convert(..., to = ...)]`"
    );
}

#[tokio::test]
async fn one_failure_fails_the_whole_review() {
    let failing =
        conversion(("v1", "v2"), |call| match call.subject.expect("an object").object.name() {
            "b" => Err(HandlerError::Permanent { message: "no unit".into() }),
            _ => Ok(Output::Json(json!({"spec": {}}))),
        });
    let message = refused(vec![failing], "v2", &[object("v1", "a"), object("v1", "b")]).await;
    let expected = "KopfExample default/b cannot be converted to kopf.dev/v2: \
                    conversion 'v1-v2' failed: no unit";
    assert_eq!(message, expected);
}

#[tokio::test]
async fn panics_and_empty_results_are_failures() {
    let panicking = conversion(("v1", "v2"), |_| panic!("no unit"));
    let message = refused(vec![panicking], "v2", &[object("v1", "a")]).await;
    assert!(message.ends_with("failed: the handler panicked: no unit"), "{message}");
    let empty = conversion(("v1", "v2"), |_| Ok(Output::Nothing));
    let message = refused(vec![empty], "v2", &[object("v1", "a")]).await;
    assert!(message.ends_with("returns the object in the other version, not nothing"), "{message}");
}

#[tokio::test]
async fn incomplete_reviews_are_rejected() {
    let world = World::new().await;
    let conversions = vec![noting("v1", "v2")];
    let engine = world.start_built(world.engine(conversions).admission(endpoint())).await;
    let config = client_config(&world).await;
    let without_version = json!({"uid": "7", "objects": []});
    for request in [json!(null), json!("x"), json!([]), json!({"uid": "7"}), without_version] {
        let (code, _) =
            ask(&config, None, &json!({"kind": "ConversionReview", "request": request})).await;
        assert_eq!(code, 400, "{request}");
    }
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn conversions_without_an_endpoint_are_a_mistake() {
    let world = World::new().await;
    let engine = world.engine(vec![noting("v1", "v2")]).build();
    let error = engine.run(std::future::pending()).await.expect_err("it cannot start");
    assert!(matches!(error, EngineError::Admission(_)), "{error}");
    let source = std::error::Error::source(&error).expect("a reason").to_string();
    assert!(source.starts_with("conversion handlers are registered"), "{source}");
}

/// Waits in real time.
async fn until(what: &str, world: &World, is_it: impl Fn(&Value) -> bool) {
    let mut seen = Value::Null;
    for _ in 0..1000 {
        seen = definition(world).await["spec"]["conversion"].clone();
        if is_it(&seen) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{what} did not happen: {seen:#}");
}

fn is_pointed(conversion: &Value) -> bool {
    let url = &conversion["webhook"]["clientConfig"]["url"];
    conversion["strategy"] == "Webhook"
        && conversion["webhook"]["conversionReviewVersions"] == json!(["v1"])
        && url.as_str().is_some_and(|url| url.ends_with(&format!("/convert/{NAME}")))
}

fn patches(world: &World) -> usize {
    let is_patch = |it: &&crate::proxy::Recorded| {
        it.method == http::Method::PATCH && it.path.contains("customresourcedefinitions")
    };
    world.journal.requests().iter().filter(is_patch).count()
}

#[tokio::test]
async fn the_conversion_stays_after_the_end_and_nothing_else_is_configured() {
    let world = World::new().await;
    let both = || vec![noting("v1", "v2"), noting("v2", "v1")];
    let engine = world.start_built(world.engine(both()).admission(endpoint())).await;
    until("the conversion", &world, is_pointed).await;
    let before = definition(&world).await["spec"].clone();
    assert_eq!(patches(&world), 1, "two handlers are of one definition");
    engine.stop().await.expect("a clean end");
    assert_eq!(definition(&world).await["spec"], before);
    let asked = world.journal.requests();
    let webhooks = asked.iter().filter(|it| it.path.contains("webhookconfigurations"));
    assert_eq!(webhooks.count(), 0, "there are no admission handlers");
}

#[tokio::test]
async fn later_and_changed_definitions_refer_to_us() {
    let world = World::bare();
    let conversions = vec![noting("v1", "v2")];
    let engine = world.start_built(world.engine(conversions).admission(endpoint())).await;
    world.create_crd(false).await;
    until("the conversion", &world, is_pointed).await;
    let reset = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    let patch = Patch::Merge(&reset);
    world.crds().patch(NAME, &PatchParams::default(), &patch).await.expect("it is reset");
    until("the repair", &world, is_pointed).await;
    world.crds().delete(NAME, &Default::default()).await.expect("it is deleted");
    let again: DynamicObject = serde_json::from_value(crd(false)).expect("a CRD");
    while world.crds().create(&PostParams::default(), &again).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    until("the conversion of the new one", &world, is_pointed).await;
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn unmanaged_definitions_are_left_alone() {
    let world = World::new().await;
    let endpoint = AdmissionEndpoint { managed: None, ..endpoint() };
    let conversions = vec![noting("v1", "v2")];
    let engine = world.start_built(world.engine(conversions).admission(endpoint)).await;
    assert_eq!(definition(&world).await["spec"]["conversion"], json!({"strategy": "None"}));
    engine.stop().await.expect("a clean end");
}

#[tokio::test]
async fn definitions_follow_a_renewed_certificate() {
    let world = World::new().await;
    let files = CertificateFiles::new("conversion");
    let endpoint = AdmissionEndpoint { certificate: Some(files.certificate()), ..endpoint() };
    let conversions = vec![noting("v1", "v2")];
    let engine = world.start_built(world.engine(conversions).admission(endpoint)).await;
    let before = client_config(&world).await["caBundle"].clone();
    files.renew();
    a_minute_passes().await;
    until("the renewal", &world, |it| it["webhook"]["clientConfig"]["caBundle"] != before).await;
    let asked = review("v2", &[object("v1", "a")]);
    let answered = ask(&client_config(&world).await, None, &asked).await;
    assert_eq!(answered, (200, answer(&[converted("v2", "a", "v1>v2")])));
    engine.stop().await.expect("a clean end");
}
