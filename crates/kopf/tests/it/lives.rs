//! Operators on the embedded server: complete lifecycles of objects, in virtual time.
//!
//! The label keeps the handlers away from the config maps that exist in every namespace.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kopf::children::Owner;
use kopf::index::Index;
use kopf::input::{
    Attempt, Labels, Live, Memo, Namespace, Object, Param, Recorder, SharedMemo, Stopped,
    SubHandlers, Typed,
};
use kopf::prelude::*;
use kopf_testing::World;
use kube::Api;

fn map(name: &str, data: Value) -> ConfigMap {
    let map = json!({"metadata": {"name": name, "labels": {"app": "web"}}, "data": data});
    serde_json::from_value(map).expect("a valid config map")
}

fn annotation(map: &ConfigMap, key: &str) -> Option<String> {
    map.metadata.annotations.as_ref()?.get(key).cloned()
}

/// Config maps have no status, so handlers write to annotations.
fn note(patch: &mut Patch, key: &str, value: impl Into<Value>) {
    let text: Value = value.into();
    let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
    patch.set(["metadata", "annotations", key], text);
}

#[kopf::on::create(ConfigMap, labels = {"app": "web"})]
async fn created(map: &ConfigMap, labels: &Labels, patch: &mut Patch) {
    let size = map.data.as_ref().map_or(0, |data| data.len());
    note(patch, "created", format!("{size} of {}", &labels["app"]));
}

#[kopf::on::field(ConfigMap, field = "data.size")]
async fn resized(Change { old, new }: Change<String>, patch: &mut Patch) {
    note(patch, "resized", format!("{old:?} -> {new:?}"));
}

#[derive(Default)]
struct Released(AtomicU32);

#[kopf::on::delete(ConfigMap, labels = {"app": "web"})]
fn released(count: State<Arc<Released>>) {
    count.0.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn an_object_is_created_changed_and_released() {
    kopf_testing::run(|world: World| async move {
        let count = Arc::new(Released::default());
        let operator =
            kopf::operator!("maps", [created, resized, released]).state(Arc::clone(&count));
        let running = world.start(operator).await;
        world.create(&map("a", json!({"size": "1"}))).await.expect("it is created");
        world.settled().await;
        let seen: ConfigMap = world.get("a").await.expect("it exists");
        assert_eq!(annotation(&seen, "created").as_deref(), Some("1 of web"));
        assert_eq!(annotation(&seen, "resized").as_deref(), Some("None -> Some(\"1\")"));
        let patch = json!({"data": {"size": "2"}});
        world.patch::<ConfigMap>("a", &patch).await.expect("it is changed");
        world.settled().await;
        let seen: ConfigMap = world.get("a").await.expect("it exists");
        assert_eq!(annotation(&seen, "resized").as_deref(), Some("Some(\"1\") -> Some(\"2\")"));
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
        world.delete::<ConfigMap>("a").await.expect("it can be deleted");
        world.settled().await;
        world.get::<ConfigMap>("a").await.expect_err("it is gone");
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        running.stop().await.expect("the operator ends well");
    });
}

#[kopf::on::create(ConfigMap, labels = {"app": "web"}, retries = 3, backoff = "10s")]
async fn third_time(attempt: Attempt, patch: &mut Patch, recorder: Recorder) -> Result {
    note(patch, "attempts", attempt.retry + 1);
    if attempt.retry < 2 {
        Err("not yet")?;
    }
    recorder.normal("Lucky", "the third time");
    Ok(())
}

#[test]
fn failures_are_retried_after_the_backoff() {
    kopf_testing::run(|world: World| async move {
        let running = world.start(kopf::operator!("maps", [third_time])).await;
        world.create(&map("a", json!({}))).await.expect("it is created");
        world.advance(5.secs()).await;
        let seen: ConfigMap = world.get("a").await.expect("it exists");
        assert_eq!(annotation(&seen, "attempts").as_deref(), Some("1"));
        world.advance(20.secs()).await;
        let seen: ConfigMap = world.get("a").await.expect("it exists");
        assert_eq!(annotation(&seen, "attempts").as_deref(), Some("3"));
        world.advance(5.secs()).await;
        let events: Api<Event> = world.api();
        let events = events.list(&Default::default()).await.expect("events are listed").items;
        let lucky = events.iter().find(|event| event.reason.as_deref() == Some("Lucky"));
        assert_eq!(lucky.expect("an event").message.as_deref(), Some("the third time"));
        running.stop().await.expect("the operator ends well");
    });
}

#[kopf::on::create(ConfigMap, labels = {"app": "web"})]
async fn in_parts(sub_handlers: SubHandlers) -> Result {
    sub_handlers.add_function_as::<part>("one", 1_u32);
    sub_handlers.add_function_as::<part>("two", 2_u32);
    sub_handlers.run().await
}

#[kopf::on::subhandler]
async fn part(number: Param<u32>, attempt: Attempt, patch: &mut Patch) -> Result {
    if attempt.retry == 0 && *number == 2 {
        return Err(kopf::temporary("later").retry_in(3.secs()));
    }
    note(patch, &format!("part-{}", *number), attempt.retry);
    Ok(())
}

#[test]
fn sub_handlers_are_retried_alone() {
    kopf_testing::run(|world: World| async move {
        let running = world.start(kopf::operator!("maps", [in_parts])).await;
        world.create(&map("a", json!({}))).await.expect("it is created");
        world.advance(10.secs()).await;
        let seen: ConfigMap = world.get("a").await.expect("it exists");
        assert_eq!(annotation(&seen, "part-1").as_deref(), Some("0"));
        assert_eq!(annotation(&seen, "part-2").as_deref(), Some("1"));
        running.stop().await.expect("the operator ends well");
    });
}

#[kopf::on::timer(ConfigMap, labels = {"app": "web"}, interval = "10s", sharp)]
async fn tick(count: &mut Memo<u32>, patch: &mut Patch) {
    **count += 1;
    note(patch, "ticks", **count);
}

#[derive(Clone, Default)]
struct Visits {
    count: u32,
}

#[kopf::on::startup]
async fn start_at_ten(visits: SharedMemo<Visits>) {
    visits.with(|visits| visits.count = 10).await;
}

#[kopf::on::field(ConfigMap, labels = {"app": "web"}, field = "data.size")]
async fn visit(visits: &mut Memo<Visits>, patch: &mut Patch) {
    visits.count += 1;
    note(patch, "visits", visits.count);
}

#[test]
fn memos_start_as_copies_of_the_operators() {
    kopf_testing::run(|world: World| async move {
        let running = world.start(kopf::operator!("maps", [start_at_ten, visit])).await;
        for name in ["a", "b"] {
            world.create(&map(name, json!({"size": "1"}))).await.expect("it is created");
            world.settled().await;
            let patch = json!({"data": {"size": "2"}});
            world.patch::<ConfigMap>(name, &patch).await.expect("it is changed");
            world.settled().await;
            let seen: ConfigMap = world.get(name).await.expect("it exists");
            assert_eq!(annotation(&seen, "visits").as_deref(), Some("12"), "{name}");
        }
        running.stop().await.expect("the operator ends well");
    });
}

#[kopf::on::daemon(ConfigMap, labels = {"app": "web"})]
async fn follow(live: Live<ConfigMap>, stopped: Stopped, seen: State<Arc<Seen>>) -> Result {
    while !stopped.wait(1.secs()).await {
        let size = live.get()?.data.and_then(|data| data.get("size").cloned());
        seen.0.store(size.and_then(|size| size.parse().ok()).unwrap_or(0), Ordering::SeqCst);
    }
    seen.0.store(99, Ordering::SeqCst);
    Ok(())
}

#[derive(Default)]
struct Seen(AtomicU32);

#[test]
fn timers_tick_and_daemons_follow_until_deletion() {
    kopf_testing::run(|world: World| async move {
        let seen = Arc::new(Seen::default());
        let operator = kopf::operator!("maps", [tick, follow]).state(Arc::clone(&seen));
        let running = world.start(operator).await;
        world.create(&map("a", json!({"size": "5"}))).await.expect("it is created");
        world.advance(25.secs()).await;
        let found: ConfigMap = world.get("a").await.expect("it exists");
        assert_eq!(annotation(&found, "ticks").as_deref(), Some("3"));
        assert_eq!(seen.0.load(Ordering::SeqCst), 5);
        let patch = json!({"data": {"size": "7"}});
        world.patch::<ConfigMap>("a", &patch).await.expect("it is changed");
        world.advance(2.secs()).await;
        assert_eq!(seen.0.load(Ordering::SeqCst), 7);
        world.delete::<ConfigMap>("a").await.expect("it can be deleted");
        world.advance(2.secs()).await;
        assert_eq!(seen.0.load(Ordering::SeqCst), 99);
        world.get::<ConfigMap>("a").await.expect_err("it is gone");
        running.stop().await.expect("the operator ends well");
    });
}

#[kopf::on::index(ConfigMap, labels = {"app": present})]
fn by_app(labels: &Labels, name: Name) -> (String, String) {
    (labels["app"].to_owned(), name.into())
}

#[kopf::on::update(ConfigMap, labels = {"app": "web"})]
async fn list_siblings(maps: &Index<by_app>, patch: &mut Patch) {
    let mut names: Vec<_> = maps.get(&"web".to_owned()).iter().map(ToString::to_string).collect();
    names.sort();
    note(patch, "siblings", names.join(","));
}

#[test]
fn indexes_know_all_objects() {
    kopf_testing::run(|world: World| async move {
        world.create(&map("a", json!({}))).await.expect("it is created");
        let running = world.start(kopf::operator!("maps", [by_app, list_siblings])).await;
        world.create(&map("b", json!({}))).await.expect("it is created");
        world.settled().await;
        let patch = json!({"data": {"size": "2"}});
        world.patch::<ConfigMap>("b", &patch).await.expect("it is changed");
        world.settled().await;
        let seen: ConfigMap = world.get("b").await.expect("it exists");
        assert_eq!(annotation(&seen, "siblings").as_deref(), Some("a,b"));
        running.stop().await.expect("the operator ends well");
    });
}

#[kopf::on::create(ConfigMap, field = "data.copies")]
async fn copy(owner: Owner, client: Client, namespace: Namespace, spec: &Object) -> Result {
    let child = owner.strict().adopt(json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": spec.value()["data"],
    }))?;
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(client, &namespace);
    secrets.create(&Default::default(), &serde_json::from_value(child)?).await?;
    Ok(())
}

#[test]
fn adopted_children_carry_the_owners_marks() {
    kopf_testing::run(|world: World| async move {
        let running = world.start(kopf::operator!("maps", [copy])).await;
        let owner = world.create(&map("a", json!({"copies": "1"}))).await.expect("it is created");
        world.settled().await;
        let child = world.get::<k8s_openapi::api::core::v1::Secret>("a").await.expect("a child");
        let references = child.metadata.owner_references.expect("owner references");
        assert_eq!(Some(&references[0].uid), owner.metadata.uid.as_ref());
        assert_eq!(child.metadata.labels, owner.metadata.labels);
        running.stop().await.expect("the operator ends well");
    });
}

#[kopf::on::validate(ConfigMap, operations = ["CREATE"], labels = {"app": "web"})]
async fn refuse_empty(map: &ConfigMap) -> Result {
    match map.data.is_some() {
        true => Ok(()),
        false => Err(kopf::deny("a map must not be empty").code(422)),
    }
}

#[kopf::on::mutate(ConfigMap, operations = ["CREATE"], labels = {"app": "web"})]
async fn complete(map: &mut Typed<ConfigMap>) {
    map.data.get_or_insert_default().entry("class".into()).or_insert_with(|| "standard".into());
}

#[test]
fn webhooks_answer_in_virtual_time() {
    kopf_testing::run(|world: World| async move {
        let running = world.start(kopf::operator!("maps", [refuse_empty])).await;
        let refused = world.create(&map_without_data("a")).await.expect_err("it is refused");
        assert!(refused.to_string().contains("a map must not be empty"), "{refused}");
        world.advance(3600.secs()).await;
        world.create(&map("a", json!({"k": "v"}))).await.expect("it is taken");
        running.stop().await.expect("the operator ends well");
        let running = world.start(kopf::operator!("maps", [complete])).await;
        let taken = world.create(&map_without_data("b")).await.expect("it is taken");
        assert_eq!(taken.data.expect("data")["class"], "standard");
        running.stop().await.expect("the operator ends well");
    });
}

#[kopf::on::validate(ConfigMap)]
async fn never_answer() {
    std::future::pending::<()>().await;
}

#[test]
fn webhook_timeouts_and_outages_are_reported_as_by_a_real_server() {
    kopf_testing::run(|world: World| async move {
        let operated = world.operate(|| kopf::operator!("maps", [never_answer])).await;
        let refused = world.create(&map("a", json!({}))).await.expect_err("nobody answers");
        assert!(refused.to_string().contains("context deadline exceeded"), "{refused}");
        let (crash, create) = (operated.crash(), async {
            tokio::time::sleep(1.secs()).await; // while the operator is stopped
            world.create(&map("b", json!({}))).await
        });
        let refused = tokio::join!(crash, create).1.expect_err("nobody is there");
        assert!(refused.to_string().contains("connection refused"), "{refused}");
    });
}

fn map_without_data(name: &str) -> ConfigMap {
    let map = json!({"metadata": {"name": name, "labels": {"app": "web"}}});
    serde_json::from_value(map).expect("a valid config map")
}

#[kopf::on::create(ConfigMap, labels = {"app": "web"})]
async fn tell_others(recorder: Recorder, patch: &mut Patch) -> Result {
    let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"}]);
    recorder.about(&owner)?.event("Debug", "Seen", "by its child");
    recorder.about(&map("b", json!({})))?.warning("Near", "there is another one");
    let mistake = recorder.about(&json!({"kind": "Node"})).err();
    note(patch, "mistake", mistake.map(|error| error.to_string()));
    Ok(())
}

#[test]
fn events_can_be_about_others() {
    kopf_testing::run(|world: World| async move {
        let running = world.start(kopf::operator!("maps", [tell_others])).await;
        world.create(&map("a", json!({}))).await.expect("it is created");
        world.advance(5.secs()).await;
        let events: Api<Event> = world.api();
        let events = events.list(&Default::default()).await.expect("events are listed").items;
        let mut found: Vec<String> = events
            .into_iter()
            .map(|event| {
                let text = |part: Option<String>| part.unwrap_or_default();
                let about = event.involved_object;
                format!("{} {} {}", text(event.type_), text(about.kind), text(about.name))
            })
            .collect();
        found.sort();
        assert_eq!(found, ["Debug Node n", "Warning ConfigMap b"]);
        let seen: ConfigMap = world.get("a").await.expect("it exists");
        assert!(annotation(&seen, "mistake").expect("a note").contains("a kind and a name"));
        running.stop().await.expect("the operator ends well");
    });
}
