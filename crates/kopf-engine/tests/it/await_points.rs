//! Kills the engine at every await point it reaches: at every poll of any of its tasks, even while
//! it starts, waits for a retry, or shuts down. See [`crate::mortal`] for how.
//!
//! A seed determines the latency of everything on its way to the server and back. The same seed
//! gives the same points in every run, except for the order within maps and of what is ready at the
//! same time.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::executor::block_on;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use http::{Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use kopf_apiserver::{DeleteOptions, Patch, SequentialIds, Server, Service, Target};
use kopf_core::handler::{Handler, HandlerKind, TimerOptions};
use kopf_core::invoke::{Call, Output, Returned};
use kopf_core::registry::Registry;
use kopf_core::settings::Settings;
use kopf_engine::{Clock, Engine};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::yield_now;

use crate::mortal::{Life, live};
use crate::proxy::AnyBody;
use crate::torture::{essence, number_in, seeds};
use crate::world::{
    Calls, async_handler, crd, last_handled, log_if_wanted, polite_daemon, temporary,
};

/// How often the user checks the object.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// How often to check in one life of an engine before it counts as stuck.
const CHECKS_MAX: usize = 500;

const TABLE: &str = "kopfexamples.kopf.dev";

/// The connection to the server: with an await wherever a network has one, and with random latency.
#[derive(Clone)]
struct Wire {
    service: Service,
    random: Arc<Mutex<fastrand::Rng>>,
}

impl Wire {
    async fn pause(&self) {
        let (turns, milliseconds) = {
            let mut random = self.random.lock();
            (random.u8(0..3), random.u64(1..30))
        };
        if turns == 0 {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        }
        for _ in 0..turns {
            yield_now().await;
        }
    }

    /// The response, piece by piece.
    fn slowed(self, body: kopf_apiserver::Body) -> AnyBody {
        let pieces = stream::unfold((self, body), |(wire, mut body)| async move {
            let piece = body.frame().await?.map_err(|never| match never {});
            wire.pause().await;
            Some((piece, (wire, body)))
        });
        StreamBody::new(pieces.boxed()).boxed_unsync()
    }
}

impl tower::Service<Request<Body>> for Wire {
    type Response = Response<AnyBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut wire = self.clone();
        Box::pin(async move {
            wire.pause().await;
            let response = wire.service.call(request).await?;
            // Here the server has processed it, but nobody knows yet.
            wire.pause().await;
            Ok(response.map(|body| wire.slowed(body)))
        })
    }
}

/// What outlives the engines: the server, and the user with a plan.
struct Setup {
    /// How to reproduce this world.
    name: String,
    server: Server,
    random: Arc<Mutex<fastrand::Rng>>,
    /// Calls of handlers whose success is stored.
    calls: Calls,
    /// Calls of daemons and timers, which start again with every engine.
    background: Calls,
    plan: Mutex<Plan>,
}

/// The steps of the user, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
enum Plan {
    #[default]
    Create,
    Update,
    Delete,
    /// Wait until the object, which looked like this before the deletion, is gone.
    Bury(Value),
    Done(Value),
}

impl Setup {
    fn new(template: &Server, seed: u64, kills: &[usize]) -> Self {
        // The engine's own jitter is determined by the seed too.
        fastrand::seed(seed);
        Self {
            name: format!("TORTURE_SEED={seed}, killed at {kills:?}"),
            server: template.fork(),
            random: Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))),
            calls: Calls::default(),
            background: Calls::default(),
            plan: Mutex::default(),
        }
    }

    /// A handler that fails this many times.
    fn failing(&self, id: &'static str, kind: HandlerKind, failures: u32) -> Handler {
        let calls = self.calls.clone();
        async_handler(id, kind, move |call| noted(calls.clone(), call, failures))
    }

    fn parent(&self) -> Handler {
        let calls = self.calls.clone();
        async_handler("parent", HandlerKind::Create, move |call| {
            let children = call.sub_handlers.clone().expect("children");
            for (id, failures) in [("good", 0), ("bad", 1)] {
                let calls = calls.clone();
                children.register(async_handler(id, HandlerKind::Sub, move |call| {
                    noted(calls.clone(), call, failures)
                }));
            }
            noted(calls.clone(), call, 0)
        })
    }

    /// A handler whose change must be made exactly once, since it is written with its success.
    fn counting(&self) -> Handler {
        let calls = self.calls.clone();
        updating(async_handler("counting", HandlerKind::Update, move |call| {
            call.patch.lock().transform(|body| {
                let count = body["spec"]["count"].as_u64().unwrap_or_default();
                body["spec"]["count"] = json!(count + 1);
            });
            noted(calls.clone(), call, 0)
        }))
    }

    fn timer(&self) -> Handler {
        let interval = Some(Duration::from_secs(3));
        let options = TimerOptions { interval, ..TimerOptions::default() };
        async_handler("timer", HandlerKind::Timer(options), |_| async {
            yield_now().await;
            Ok(Output::Json(json!("ticked")))
        })
    }

    fn engine(&self, born: Duration) -> Engine {
        let deletion = HandlerKind::Delete { optional: false };
        let handlers = [
            self.failing("create_later", HandlerKind::Create, 2),
            self.parent(),
            updating(self.failing("update_now", HandlerKind::Update, 0)),
            updating(self.failing("update_later", HandlerKind::Update, 1)),
            self.counting(),
            self.failing("delete_now", deletion.clone(), 0),
            self.failing("delete_later", deletion, 1),
            polite_daemon(&self.background),
            self.timer(),
        ];
        let mut settings = Settings::default();
        settings.posting.enabled = false;
        let midnight: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let wire = Wire { service: self.server.service(), random: Arc::clone(&self.random) };
        Engine::builder(Registry::from_iter(handlers))
            .client(kube::Client::new(wire, "default"))
            .settings(settings)
            .clock(Clock::following_tokio(midnight + born))
            .build()
    }

    async fn object(&self) -> Value {
        let target = Target::new(TABLE, "default", "a");
        match self.server.local().get(target).await {
            Ok(stored) => stored.value().clone(),
            Err(error) => {
                assert_eq!(error.code, 404, "{error}");
                Value::Null
            }
        }
    }

    /// Does what can be done now; when everything is done, returns the last state of the object.
    async fn visit(&self) -> Option<Value> {
        let target = Target::new(TABLE, "default", "a");
        let (api, object) = (self.server.local(), self.object().await);
        let plan = self.plan.lock().clone();
        let next = match plan {
            Plan::Create => {
                let object = json!({
                    "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
                    "metadata": {"name": "a"}, "spec": {"x": 1},
                });
                api.create(TABLE, "default", object).await.expect("created");
                Plan::Update
            }
            Plan::Update if is_handled(&object, 1) => {
                let patch = Patch::Merge(json!({"spec": {"x": 2}}));
                api.patch(target, patch).await.expect("patched");
                Plan::Delete
            }
            Plan::Delete if is_handled(&object, 2) => {
                api.delete(target, DeleteOptions::default()).await.expect("deleted");
                Plan::Bury(essence(&object))
            }
            Plan::Bury(before) if object.is_null() => Plan::Done(before),
            waiting => waiting,
        };
        *self.plan.lock() = next.clone();
        if let Plan::Done(before) = next { Some(before) } else { None }
    }

    /// Runs an engine while the user continues with the plan.
    async fn scenario(&self, born: Duration) -> Value {
        let engine = self.engine(born).start();
        for _ in 0..CHECKS_MAX {
            tokio::time::sleep(CHECK_INTERVAL).await;
            if let Some(before) = self.visit().await {
                engine.stop().await.expect("a clean end");
                return before;
            }
        }
        let object = self.object().await;
        panic!("{}: stuck at {:?}: {object:#}", self.name, self.plan.lock());
    }

    /// Whether a call is no longer needed, according to the server.
    fn is_written(&self, call: &str, object: &Value) -> bool {
        let (id, attempt) = call.split_once(':').expect("an id and an attempt");
        let plan = self.plan.lock();
        let is_finished = match id.split('_').next() {
            _ if *plan == Plan::Create => false,
            _ if object.is_null() => true,
            Some("delete") => false,
            Some("update" | "counting") => handled_spec(object) == Some(2),
            _ => handled_spec(object).is_some(),
        };
        let note = format!("kopf.zalando.org/{}", id.replace('/', "."));
        let record = object["metadata"]["annotations"][note].as_str().unwrap_or("{}");
        let record: Value = serde_json::from_str(record).expect("a record");
        let attempt: u64 = attempt.parse().expect("a number");
        is_finished
            || record["success"] == true
            || record["retries"].as_u64().is_some_and(|retries| attempt < retries)
    }
}

/// Records the call, and succeeds after enough failures.
async fn noted(calls: Calls, call: Call, failures: u32) -> Returned {
    let retry = call.attempt.retry;
    calls.note(format!("{}:{retry}", call.handler.id));
    yield_now().await;
    if retry < failures { Err(temporary("not yet", 2.0)) } else { Ok(Output::Json(json!("done"))) }
}

/// A handler of the user's changes, not of the counted ones.
fn updating(mut handler: Handler) -> Handler {
    handler.filters.field = Some("spec.x".into());
    handler
}

/// The user's value in the last-handled spec.
fn handled_spec(object: &Value) -> Option<u64> {
    last_handled(object)?["spec"]["x"].as_u64()
}

fn is_handled(object: &Value, x: u64) -> bool {
    let is_settled = last_handled(object).is_some_and(|it| it["spec"] == object["spec"]);
    is_settled && handled_spec(object) == Some(x) && object["status"]["timer"] == "ticked"
}

/// The same scenario, repeated, and how it ends without kills.
struct Scenario {
    template: Server,
    seed: u64,
    /// The object before its deletion.
    object: Value,
    calls: Vec<String>,
    points: usize,
}

impl Scenario {
    fn new(has_status: bool, seed: u64) -> Self {
        log_if_wanted();
        let template = Server::builder().controllers(false).ids(SequentialIds::default()).build();
        let (api, table) = (template.local(), "customresourcedefinitions.apiextensions.k8s.io");
        block_on(api.create(table, "", crd(has_status))).expect("a resource");
        let setup = Setup::new(&template, seed, &[]);
        let Life { points, outcome, .. } = live(None, setup.scenario(Duration::ZERO));
        let object = outcome.expect("nobody is killed");
        assert_eq!(object["spec"], json!({"x": 2, "count": 1}), "{}", setup.name);
        assert_eq!(setup.background.all(), ["begun", "ended"], "{}", setup.name);
        let calls = setup.calls.all();
        assert_eq!(calls.len(), 15, "{}: {calls:?}", setup.name);
        Self { template, seed, object, calls, points }
    }

    /// Runs it with engines that are killed at these points, one after the other.
    fn check(&self, kills: &[usize]) {
        let setup = Setup::new(&self.template, self.seed, kills);
        let (mut born, mut open) = (Duration::ZERO, self.calls.clone());
        for kill in kills.iter().copied().map(Some).chain([None]) {
            let (calls, background) = (setup.calls.count(), setup.background.count());
            let Life { lasted, outcome, .. } = live(kill, setup.scenario(born));
            born += lasted;
            let made = setup.calls.all().split_off(calls);
            let left = without(open.clone(), &made, &setup.name);
            if let Some(object) = outcome {
                assert!(left.is_empty(), "{}: {left:?} are lost: {made:?}", setup.name);
                assert_eq!(object, self.object, "{}", setup.name);
                let daemon = setup.background.all().split_off(background);
                let is_ended = daemon.is_empty() || daemon == ["begun", "ended"];
                assert!(is_ended, "{}: {daemon:?}", setup.name);
                return;
            }
            let object = block_on(setup.object());
            open.retain(|call| !setup.is_written(call, &object));
        }
        unreachable!("the last life is not ended by anybody")
    }
}

/// The calls that remain to be made.
fn without(mut open: Vec<String>, made: &[String], setup: &str) -> Vec<String> {
    for call in made {
        let Some(place) = open.iter().position(|it| it == call) else {
            panic!("{setup}: {call} is made although it is done: {made:?}")
        };
        open.swap_remove(place);
    }
    open
}

/// With another network for `TORTURE_SEED=3`, and only at one point for `TORTURE_POINT=17`.
fn kill_everywhere(has_status: bool) {
    let scenario = Scenario::new(has_status, number_in("TORTURE_SEED").unwrap_or(0));
    let points = scenario.points;
    assert!(points > 100, "the scenario is too short to prove anything: {points}");
    match number_in("TORTURE_POINT") {
        Some(point) => scenario.check(&[point as usize]),
        None => (0..points).for_each(|point| scenario.check(&[point])),
    }
}

#[test]
fn the_end_is_the_same_for_a_kill_at_any_await() {
    kill_everywhere(false);
}

#[test]
fn the_end_is_the_same_at_whichever_await_if_the_status_is_written_apart() {
    kill_everywhere(true);
}

#[test]
fn the_end_is_the_same_at_whichever_awaits_one_engine_after_the_other_is_killed() {
    for seed in seeds() {
        let scenario = Scenario::new(seed % 2 == 0, seed);
        let mut random = fastrand::Rng::with_seed(seed);
        let kills: Vec<usize> = (0..4).map(|_| random.usize(0..scenario.points)).collect();
        scenario.check(&kills);
    }
}
