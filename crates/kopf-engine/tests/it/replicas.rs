//! Replicas of one operator: one leads, the others stand by and take over.

use std::time::Duration;

use http::Method;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kopf_core::handler::{Handler, HandlerKind, TimerOptions, WebhookOptions};
use kopf_core::invoke::{HandlerError, Output};
use kopf_core::occasion::Occasion;
use kopf_core::settings::{LeadershipMode, Settings};
use kopf_engine::{EngineBuilder, Leadership, Running};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::proxy::{Fault, Journal, Proxy, Recorded, Rule};
use crate::world::{
    Calls, World, async_handler, eventually, handler, last_handled, polite_daemon, quiesce,
};

/// One replica, with its own proxy to the server.
struct Replica {
    running: Running,
    journal: Journal,
    calls: Calls,
}

fn leases(world: &World) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "coordination.k8s.io".into(),
        version: "v1".into(),
        api_version: "coordination.k8s.io/v1".into(),
        kind: "Lease".into(),
        plural: "leases".into(),
    };
    Api::namespaced_with(world.client.clone(), "default", &resource)
}

async fn lease(world: &World) -> Value {
    let found = leases(world).get_opt("demo").await.expect("the server answers");
    found.map_or(Value::Null, |lease| lease.data["spec"].clone())
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.posting.enabled = false;
    settings.peering.standalone = true;
    settings.leadership.mode = LeadershipMode::Standby;
    settings.leadership.name = Some("demo".into());
    settings.leadership.namespace = Some("default".into());
    settings
}

fn builder(world: &World, journal: &Journal, handlers: Vec<Handler>) -> EngineBuilder {
    let proxy = Proxy { service: world.server.service(), journal: journal.clone() };
    world.engine(handlers).client(kube::Client::new(proxy, "default")).settings(settings())
}

/// Starts a replica whose handlers record their calls.
fn start(world: &World, identity: &str) -> Replica {
    let (calls, journal) = (Calls::default(), Journal::default());
    let builder = builder(world, &journal, handlers(&calls)).identity(identity);
    Replica { running: builder.build().start(), journal, calls }
}

/// A handler of each kind that acts.
fn handlers(calls: &Calls) -> Vec<Handler> {
    let noting = |id: &'static str, kind: HandlerKind| {
        let calls = calls.clone();
        handler(id, kind, move |call| {
            let name = call.subject.as_ref().expect("an object").object.name().to_owned();
            let kind = match &call.occasion {
                Occasion::Event { kind } => format!("{kind:?}"),
                _ => String::new(),
            };
            calls.note(format!("{id} {name} {kind}").trim().to_owned());
            Ok(Output::Nothing)
        })
    };
    let interval = Some(Duration::from_secs(1));
    vec![
        noting("create", HandlerKind::Create),
        noting("update", HandlerKind::Update),
        noting("event", HandlerKind::Event),
        noting("timer", HandlerKind::Timer(TimerOptions { interval, ..TimerOptions::default() })),
        polite_daemon(calls),
    ]
}

impl Replica {
    fn leads(&self) -> bool {
        self.running.status().snapshot().leadership.is_some_and(|it| it.leads)
    }

    fn count(&self, call: &str) -> usize {
        self.calls.all().iter().filter(|it| *it == call).count()
    }

    /// The requests for objects of the operator.
    fn requests(&self) -> Vec<Recorded> {
        let mut requests = self.journal.requests();
        requests.retain(|it| it.path.contains("kopfexamples"));
        requests
    }

    fn writes(&self) -> usize {
        self.requests().iter().filter(|it| it.method != Method::GET).count()
    }
}

/// A leader and a standby replica, with one handled object.
async fn pair(world: &World) -> (Replica, Replica) {
    let leader = start(world, "one");
    eventually("the election", || leader.leads()).await;
    let standby = start(world, "two");
    standby.running.settled().await;
    world.create("a", json!({"x": 1})).await;
    world.until_handled("a").await;
    eventually("the daemon", || leader.count("begun") == 1).await;
    quiesce().await;
    (leader, standby)
}

#[tokio::test(start_paused = true)]
async fn a_standby_watches_but_does_nothing() {
    let world = World::new().await;
    let (leader, standby) = pair(&world).await;
    assert!(!standby.leads());
    assert_eq!(standby.calls.all(), Vec::<String>::new());
    assert_eq!(standby.writes(), 0);
    let is_watch = |it: &Recorded| it.query.contains("watch=true");
    assert!(standby.requests().iter().any(is_watch), "its store is warm");
    assert!(standby.running.status().snapshot().ready, "it is ready to take over");
    let spec = lease(&world).await;
    assert_eq!(spec["holderIdentity"], "one");
    assert_eq!(spec["leaseDurationSeconds"], 15);
    assert_eq!(spec["leaseTransitions"], 0);
    leader.running.stop().await.expect("a clean end");
    standby.running.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_standby_takes_over_within_a_second_when_the_leader_leaves() {
    let world = World::new().await;
    let (leader, standby) = pair(&world).await;
    standby.journal.clear();
    leader.running.stop().await.expect("a clean end");
    let left = tokio::time::Instant::now();
    eventually("the hand-over", || standby.leads()).await;
    // On the controlled clock, on which only waiting takes time.
    assert!(left.elapsed() < Duration::from_secs(1), "{:?}", left.elapsed());
    eventually("the daemon", || standby.count("begun") == 1).await;
    assert_eq!(standby.count("create a"), 0, "what has succeeded is not run again");
    assert_eq!(standby.count("event a None"), 1, "as after a start");
    world.merge("a", json!({"spec": {"x": 2}})).await;
    world.until_handled("a").await;
    assert_eq!(standby.count("update a"), 1);
    let is_list = |it: &Recorded| it.method == Method::GET && !it.query.contains("watch=true");
    assert!(!standby.requests().iter().any(is_list), "nothing is listed again");
    assert_eq!(lease(&world).await["leaseTransitions"], 1);
    let labels = leases(&world).get("demo").await.expect("a Lease").metadata.labels;
    assert_eq!(labels.unwrap_or_default()["kopf.dev/leader-of"], "demo", "`kopf explain` finds it");
    standby.running.stop().await.expect("a clean end");
    assert_eq!(lease(&world).await["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn the_begin_and_the_end_of_a_leadership_are_posted_as_events() {
    let world = World::new().await;
    let mut settings = settings();
    settings.posting.enabled = true;
    let builder = builder(&world, &Journal::default(), Vec::new()).settings(settings);
    let mut running = builder.identity("one").build().start();
    assert!(running.ready().await);
    eventually("the election", || leads(&running)).await;
    quiesce().await;
    running.stop().await.expect("a clean end");
    let events = world.server.local().list("events", "default").await;
    let mut messages: Vec<_> = events
        .iter()
        .map(|event| event.content())
        .filter(|event| event["reason"] == "LeaderElection")
        .map(|event| event["message"].as_str().unwrap_or_default().to_owned())
        .collect();
    messages.sort();
    assert_eq!(messages, ["one became leader", "one stopped leading"]);
}

#[tokio::test(start_paused = true)]
async fn a_standby_takes_over_when_the_lease_of_a_dead_leader_expires() {
    let world = World::new().await;
    let (leader, standby) = pair(&world).await;
    leader.running.abort();
    let died = tokio::time::Instant::now();
    world.merge("a", json!({"spec": {"x": 2}})).await;
    world.create("b", json!({"x": 1})).await;
    world.until_handled("a").await;
    world.until_handled("b").await;
    // The lease time plus a second, on the controlled clock.
    assert!(died.elapsed() <= Duration::from_secs(16), "{:?}", died.elapsed());
    assert_eq!((standby.count("update a"), standby.count("create b")), (1, 1));
    assert_eq!(standby.count("create a"), 0);
    standby.running.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn objects_deleted_during_standby_are_forgotten() {
    let world = World::new().await;
    let leader = start(&world, "one");
    eventually("the election", || leader.leads()).await;
    let standby = start(&world, "two");
    standby.running.settled().await;
    for number in 0..5 {
        world.create(&format!("object-{number}"), json!({"x": 1})).await;
    }
    eventually("all of them", || standby.running.status().snapshot().objects == 5).await;
    for number in 0..5 {
        world.delete(&format!("object-{number}")).await;
    }
    eventually("their end", || standby.running.status().snapshot().objects == 0).await;
    assert_eq!(standby.calls.all(), Vec::<String>::new());
    leader.running.stop().await.expect("a clean end");
    standby.running.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_everything_before_another_one_starts() {
    let world = World::new().await;
    let (leader, standby) = pair(&world).await;
    // From now on the leader's writes of the Lease are lost; everything else works.
    leader.journal.add_rule(Rule {
        method: Some(Method::PATCH),
        path: "leases",
        watches: None,
        times: usize::MAX,
        fault: Fault::Answer(503, None),
    });
    eventually("the end of its term", || !leader.leads()).await;
    assert!(!standby.leads(), "the deadline is shorter than the Lease");
    eventually("the end of the daemon", || leader.running.status().snapshot().work.background == 0)
        .await;
    let (calls, writes) = (leader.calls.count(), leader.writes());
    world.merge("a", json!({"spec": {"x": 2}})).await;
    eventually("the hand-over", || standby.leads()).await;
    world.until_handled("a").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(leader.calls.count(), calls, "{:?}", leader.calls.all());
    assert_eq!(leader.writes(), writes);
    assert_eq!(standby.count("update a"), 1);
    assert!(standby.count("timer a") > 0);
    // And it can lead again.
    leader.journal.clear_rules();
    standby.running.stop().await.expect("a clean end");
    eventually("the return", || leader.leads()).await;
    world.merge("a", json!({"spec": {"x": 3}})).await;
    world.until_handled("a").await;
    assert_eq!(leader.count("update a"), 1);
    assert_eq!(leader.count("create a"), 1, "nothing that has succeeded is run again");
    leader.running.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_runs_when_the_term_ends_is_cancelled_and_writes_nothing() {
    let world = World::new().await;
    let (calls, journal) = (Calls::default(), Journal::default());
    let noted = calls.clone();
    let slow = async_handler("slow", HandlerKind::Create, move |call| {
        let noted = noted.clone();
        async move {
            noted.note("begun");
            call.patch.lock().set(&kopf_model::FieldPath::from_keys(["spec", "y"]), json!(1));
            let leadership = call.operator.state.get::<Leadership>().expect("it is there");
            noted.note(format!("term {:?}", leadership.term()));
            tokio::time::sleep(Duration::from_secs(60)).await;
            noted.note("ended");
            Ok(Output::Nothing)
        }
    });
    let leader = builder(&world, &journal, vec![slow]).identity("one").build().start();
    let leads = || leader.status().snapshot().leadership.is_some_and(|it| it.leads);
    eventually("the election", leads).await;
    world.create("a", json!({"x": 1})).await;
    eventually("the handler", || calls.count() == 2).await;
    let held = json!({"spec": {"holderIdentity": "thief", "leaseTransitions": 9}});
    let patch = Patch::Merge(held);
    leases(&world).patch("demo", &PatchParams::default(), &patch).await.expect("it is stolen");
    eventually("the end of its term", || !leads()).await;
    journal.clear();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(calls.all(), ["begun", "term Some(0)"]);
    assert!(last_handled(&world.get("a").await).is_none());
    assert!(world.get("a").await["spec"]["y"].is_null());
    let mut writes = journal.requests();
    writes.retain(|it| it.method != Method::GET && it.path.contains("kopfexamples"));
    assert!(writes.is_empty(), "{writes:#?}");
    leader.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn indexes_are_complete_on_a_standby() {
    let world = World::new().await;
    let leader = start(&world, "one");
    eventually("the election", || leader.leads()).await;
    let journal = Journal::default();
    let index = handler("index", HandlerKind::Index, |call| {
        let name = call.subject.as_ref().expect("an object").object.name().to_owned();
        Ok(Output::Json(json!({name: 1})))
    });
    let engine = builder(&world, &journal, vec![index]).identity("two").build();
    let indexes = engine.indexes();
    let standby = engine.start();
    standby.settled().await;
    world.create("a", json!({"x": 1})).await;
    let size = || indexes.get("index").map_or(0, |index| index.keys().len());
    eventually("the entry", || size() == 1).await;
    world.delete("a").await;
    eventually("its end", || size() == 0).await;
    leader.running.stop().await.expect("a clean end");
    standby.stop().await.expect("a clean end");
}

#[tokio::test(start_paused = true)]
async fn unsafe_times_are_rejected_at_the_start() {
    let world = World::new().await;
    let mut settings = Settings::default();
    settings.leadership.mode = LeadershipMode::Standby;
    settings.leadership.name = Some("demo".into());
    settings.leadership.renew_deadline = Duration::from_secs(15);
    let engine = world.engine(Vec::new()).settings(settings).build();
    let error = engine.run(std::future::pending()).await.expect_err("it must not run");
    assert!(matches!(error, kopf_engine::EngineError::Leadership(_)), "{error:?}");
}

/// A replica that validates objects, with its own port.
fn start_checking(world: &World, identity: &str) -> Running {
    let check = handler("check", HandlerKind::Validate(WebhookOptions::default()), |_| {
        Err(HandlerError::Denied { message: "too small".into(), code: 418 })
    });
    let builder = builder(world, &Journal::default(), vec![check]).identity(identity);
    builder.admission(crate::webhooks::endpoint()).build().start()
}

fn leads(running: &Running) -> bool {
    running.status().snapshot().leadership.is_some_and(|it| it.leads)
}

/// Waits until the webhook rejects an object as too small.
async fn until_checked(world: &World, name: &str) {
    let mut last = String::new();
    for _ in 0..200 {
        let object = serde_json::from_value(json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "metadata": {"name": name},
        }));
        let created = world.api().create(&PostParams::default(), &object.expect("one")).await;
        last = created.map_or_else(|error| error.to_string(), |_| "it was created".to_owned());
        if last.contains("too small") {
            return;
        }
        let _ = world.api().delete(name, &DeleteParams::default()).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nobody checks: {last}");
}

/// Sockets and a paused clock are incompatible, so this runs in real time.
#[tokio::test]
async fn replicas_share_a_webhook_certificate() {
    let world = World::new().await;
    let one = start_checking(&world, "one");
    until_checked(&world, "first").await;
    let two = start_checking(&world, "two");
    two.settled().await;
    assert!(leads(&one) && !leads(&two));
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(world.client.clone());
    let made = secrets.get("demo-webhooks").await.expect("a Secret").data.expect("data");
    let trusted = || async {
        let configuration = configurations.get("my-operator.dev").await.expect("a configuration");
        configuration.webhooks.expect("webhooks")[0].client_config.ca_bundle.clone()
    };
    assert_eq!(trusted().await.as_ref(), made.get("ca.crt"));
    // The other one presents the same certificate when it leads.
    one.stop().await.expect("a clean end");
    until_checked(&world, "second").await;
    assert!(leads(&two));
    assert_eq!(trusted().await.as_ref(), made.get("ca.crt"));
    assert_eq!(secrets.get("demo-webhooks").await.expect("a Secret").data, Some(made));
    two.stop().await.expect("a clean end");
}
