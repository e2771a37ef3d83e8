//! What users can reach through the crate `kopf` alone. Uses no other crate of ours except the test
//! kit.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use kopf::Settings;
use kopf::filter::{Occasion, Subject};
use kopf::input::{Diff, Labels};
use kopf::lifecycle::Lifecycle;
use kopf::prelude::*;
use kopf::settings::ProgressStorageSetting;
use kopf_testing::World;

type Calls = Arc<Mutex<Vec<&'static str>>>;

fn map(name: &str, data: Value) -> ConfigMap {
    let map = json!({"metadata": {"name": name, "labels": {"app": "web"}}, "data": data});
    serde_json::from_value(map).expect("a valid config map")
}

fn note(calls: &State<Calls>, name: &'static str) {
    calls.lock().expect("nobody panics with it").push(name);
}

#[kopf::on::create(ConfigMap, labels = {"app": "web"})]
async fn first(calls: State<Calls>) {
    note(&calls, "first");
}

#[kopf::on::create(ConfigMap, labels = {"app": "web"})]
async fn second(calls: State<Calls>) {
    note(&calls, "second");
}

#[test]
fn operators_choose_by_their_lifecycle() {
    kopf_testing::run(|world: World| async move {
        let calls = Calls::default();
        let last = Lifecycle::custom(|mut due, _| due.split_off(due.len().max(1) - 1));
        let operator = kopf::operator!("maps", [first, second]).state(Arc::clone(&calls));
        let running = world.start(operator.lifecycle(last)).await;
        world.create(&map("a", json!({}))).await.expect("it is created");
        world.settled().await;
        assert_eq!(*calls.lock().expect("nobody panics with it"), ["second", "first"]);
        running.stop().await.expect("the operator ends well");
    });
}

fn shrinks(subject: &Subject, occasion: &Occasion) -> bool {
    let Occasion::Change(change) = occasion else { return false };
    let size = |side: &Value| side["data"]["size"].as_str().map(str::len);
    let old = change.old.as_ref().and_then(|old| size(old.value()));
    subject.object.label("app") == Some("web") && size(subject.object.value()) < old
}

#[kopf::on::update(ConfigMap, when = shrinks)]
async fn by_function(calls: State<Calls>) {
    note(&calls, "by function");
}

#[kopf::on::update(ConfigMap, when = |subject: &Subject, occasion: &Occasion| shrinks(subject, occasion))]
async fn by_closure(calls: State<Calls>) {
    note(&calls, "by closure");
}

#[kopf::on::update(ConfigMap, when = |diff: &Diff, labels: &Labels| diff.touches("data.other") && labels.contains_key("app"))]
async fn by_difference(calls: State<Calls>) {
    note(&calls, "by difference");
}

#[kopf::on::event(ConfigMap, when = |_: &Diff| true)]
async fn without_difference(calls: State<Calls>) {
    note(&calls, "without difference");
}

#[test]
fn conditions_see_the_change() {
    kopf_testing::run(|world: World| async move {
        let calls = Calls::default();
        let operator =
            kopf::operator!("maps", [by_function, by_closure, by_difference, without_difference]);
        let operator = operator.state(Arc::clone(&calls));
        let running = world.start(operator).await;
        world.create(&map("a", json!({"size": "22", "other": "1"}))).await.expect("it is created");
        for (patch, expected) in [
            (json!({"data": {"size": "333"}}), &[][..]),
            (json!({"data": {"size": "1"}}), &["by function", "by closure"]),
            (json!({"data": {"other": "2"}}), &["by difference"]),
        ] {
            world.settled().await;
            calls.lock().expect("nobody panics with it").clear();
            world.patch::<ConfigMap>("a", &patch).await.expect("it is changed");
            world.settled().await;
            assert_eq!(*calls.lock().expect("nobody panics with it"), expected, "{patch}");
        }
        running.stop().await.expect("the operator ends well");
    });
}

#[kopf::on::startup]
async fn note_in_status(settings: &mut Settings) {
    settings.persistence.progress_storage =
        ProgressStorageSetting::Status { name: "mine".to_owned() };
}

#[test]
fn storages_are_chosen_by_startup_handlers() {
    kopf_testing::run(|world: World| async move {
        let failing = kopf::closure::create(("", "v1", "configmaps"), || async {
            Err::<(), _>(kopf::temporary("later").retry_in(600.secs()))
        });
        let failing = failing.label("app", kopf::filter::MetaFilter::Present);
        let operator = kopf::operator!("maps", [note_in_status]).with(failing);
        let running = world.start(operator).await;
        world.create(&map("a", json!({}))).await.expect("it is created");
        world.advance(1.secs()).await;
        let bodies = world.requests().patches().on("configmaps").bodies();
        assert!(
            bodies.iter().any(|body| body["status"]["mine"]["progress"]["create"].is_object()),
            "{bodies:?}"
        );
        running.stop().await.expect("the operator ends well");
    });
}
