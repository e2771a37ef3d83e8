//! Objects whose copy does not fit into annotations: secrets of the maximum size.

use std::io::Write;
use std::sync::Arc;

use base64::Engine as _;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kopf_core::handler::{Handler, HandlerKind};
use kopf_core::invoke::Output;
use kopf_core::occasion::Occasion;
use kopf_model::Selector;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::json;

use crate::world::{Calls, FINALIZER, LAST_HANDLED, World, eventually, handler};

/// The largest secret that the server accepts.
const SIZE: usize = 1024 * 1024;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }

    fn listen(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || log.clone()).finish();
        tracing::subscriber::set_default(subscriber)
    }
}

fn on_secrets(calls: &Calls, id: &'static str, kind: HandlerKind) -> Handler {
    let calls = calls.clone();
    let mut noting = handler(id, kind, move |call| {
        let Occasion::Change(change) = &call.occasion else { return Ok(Output::Nothing) };
        let fields: Vec<String> = change.diff.iter().map(|it| it.field.to_string()).collect();
        calls.note(format!(
            "{id}({})",
            if id == "update_fn" { fields.join(",") } else { "".into() }
        ));
        Ok(Output::Nothing)
    });
    noting.selector = Some(Selector::parse(&["v1", "secrets"]).expect("a selector"));
    noting
}

fn handlers(calls: &Calls) -> Vec<Handler> {
    vec![
        on_secrets(calls, "create_fn", HandlerKind::Create),
        on_secrets(calls, "update_fn", HandlerKind::Update),
        on_secrets(calls, "delete_fn", HandlerKind::Delete { optional: false }),
    ]
}

/// Incompressible bytes, always the same.
fn noise(seed: u64, size: usize) -> ByteString {
    let mut random = fastrand::Rng::with_seed(seed);
    ByteString((0..size).map(|_| random.u8(..)).collect())
}

fn secret(data: &[(&str, ByteString)]) -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some("big".into());
    secret.data = Some(data.iter().map(|(key, value)| ((*key).into(), value.clone())).collect());
    secret
}

async fn until_handled(api: &Api<Secret>, what: &str, is_it: impl Fn(&str) -> bool) -> Secret {
    for _ in 0..2000 {
        let found = api.get("big").await.expect("it exists");
        let note = found.metadata.annotations.as_ref().and_then(|notes| notes.get(LAST_HANDLED));
        if note.is_some_and(|note| is_it(note)) {
            return found;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("{what} did not happen");
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_a_mebibyte_is_handled_at_the_first_try() {
    let log = Log::default();
    let _listening = log.listen();
    let world = World::bare();
    let engine = world.start(handlers(&world.calls)).await;
    let api: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    let (large, small) = (noise(1, SIZE - 64), noise(2, 32));
    let object = secret(&[("large", large.clone()), ("small", small)]);
    api.create(&PostParams::default(), &object).await.expect("the server takes it");
    let first = until_handled(&api, "the creation", |_| true).await;
    let note = first.metadata.annotations.as_ref().expect("notes")[LAST_HANDLED].clone();
    assert!(note.len() < 64 * 1024, "{} bytes of notes", note.len());
    assert_eq!(first.metadata.finalizers, Some(vec![FINALIZER.to_owned()]));

    // A small field changes, then the large one: distinguished although only digests are stored.
    let encode = |bytes: &ByteString| base64::engine::general_purpose::STANDARD.encode(&bytes.0);
    let patch = json!({"data": {"small": encode(&noise(3, 32))}});
    let params = PatchParams::default();
    api.patch("big", &params, &Patch::Merge(patch)).await.expect("patched");
    let second = until_handled(&api, "the first update", |it| it != note).await;
    let second = second.metadata.annotations.expect("notes")[LAST_HANDLED].clone();
    let patch = json!({"data": {"large": encode(&noise(4, SIZE - 64))}});
    api.patch("big", &params, &Patch::Merge(patch)).await.expect("patched");
    until_handled(&api, "the second update", |it| it != second).await;

    api.delete("big", &DeleteParams::default()).await.expect("deleted");
    let calls = world.calls.clone();
    eventually("the deletion", || calls.count() == 4).await;
    assert_eq!(
        world.calls.all(),
        ["create_fn()", "update_fn(data.small)", "update_fn(data.large)", "delete_fn()"]
    );
    for _ in 0..200 {
        if api.get_opt("big").await.expect("an answer").is_none() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(api.get_opt("big").await.expect("an answer").is_none(), "it is released");
    let codes: Vec<u16> = world.writes().iter().map(|it| it.code).collect();
    assert_eq!(codes, [200; 5], "finalizer, creation, two updates, release: all taken at once");
    let text = log.text();
    let line = text.lines().find(|line| line.contains("the last handled state is stored"));
    let line = line.expect("the choice is logged");
    assert!(line.contains("digest"), "{line}");
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_large_object_that_compresses_well_keeps_its_old_values() {
    let world = World::bare();
    let engine = world.start(handlers(&world.calls)).await;
    let api: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    let object = secret(&[("large", ByteString(vec![7; SIZE / 2]))]);
    api.create(&PostParams::default(), &object).await.expect("the server takes it");
    let handled = until_handled(&api, "the creation", |_| true).await;
    let note = &handled.metadata.annotations.expect("notes")[LAST_HANDLED];
    assert!(note.contains("zstd") && note.len() < 8 * 1024, "{} bytes of notes", note.len());
    let codes: Vec<u16> = world.writes().iter().map(|it| it.code).collect();
    assert_eq!(codes, [200, 200]);
    engine.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_small_object_is_stored_as_kopf_stores_it() {
    let log = Log::default();
    let _listening = log.listen();
    let world = World::bare();
    let engine = world.start(handlers(&world.calls)).await;
    let api: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    let object = secret(&[("password", ByteString(b"secret".to_vec()))]);
    api.create(&PostParams::default(), &object).await.expect("the server takes it");
    let handled = until_handled(&api, "the creation", |_| true).await;
    let note = &handled.metadata.annotations.expect("notes")[LAST_HANDLED];
    assert_eq!(note, "{\"data\":{\"password\":\"c2VjcmV0\"},\"type\":\"Opaque\"}\n");
    assert!(!log.text().contains("the last handled state is stored"), "nothing to tell");
    engine.stop().await.expect("a clean end");
}
