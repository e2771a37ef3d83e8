//! A server with one custom resource, handlers made from closures, and an engine between them.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use kopf_apiserver::Server;
use kopf_core::handler::{DaemonOptions, Handler, HandlerKind};
use kopf_core::invoke::{Call, HandlerError, Invocation, Invoke, Output, Returned};
use kopf_core::registry::Registry;
use kopf_core::settings::Settings;
use kopf_engine::{Clock, Engine, EngineBuilder, Running};
use kopf_model::Selector;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::proxy::{Journal, MOMENT, Proxy, Recorded};

pub(crate) const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";
pub(crate) const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

/// Pauses between checks grow up to this; on the controlled clock, waiting costs nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with a client for the engine and one for the test.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) journal: Journal,
    pub(crate) client: kube::Client,
    pub(crate) calls: Calls,
}

/// What handlers record, in order.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Vec<String>>>);

type Function = dyn Fn(Call) -> Returned + Send + Sync;

struct Closure(Arc<Function>);

impl Invoke for Closure {
    fn invoke(&self, call: Call) -> Invocation {
        let function = Arc::clone(&self.0);
        Invocation::Future(Box::pin(async move { function(call) }))
    }
}

type AsyncFunction = dyn Fn(Call) -> kopf_core::invoke::BoxFuture<Returned> + Send + Sync;

struct AsyncClosure(Arc<AsyncFunction>);

impl Invoke for AsyncClosure {
    fn invoke(&self, call: Call) -> Invocation {
        Invocation::Future((self.0)(call))
    }
}

/// The resource of all tests.
pub(crate) fn examples() -> ApiResource {
    ApiResource {
        group: "kopf.dev".into(),
        version: "v1".into(),
        api_version: "kopf.dev/v1".into(),
        kind: "KopfExample".into(),
        plural: "kopfexamples".into(),
    }
}

pub(crate) fn crd(status_subresource: bool) -> Value {
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        }},
    });
    if status_subresource {
        version["subresources"] = json!({"status": {}});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "kopfexamples.kopf.dev"},
        "spec": {
            "group": "kopf.dev",
            "scope": "Namespaced",
            "names": {
                "kind": "KopfExample", "plural": "kopfexamples",
                "singular": "kopfexample", "shortNames": ["kex"],
            },
            "versions": [version],
        },
    })
}

impl World {
    /// A server with the custom resource, without a status subresource.
    pub(crate) async fn new() -> Self {
        let world = Self::bare();
        world.create_crd(false).await;
        world
    }

    /// The same with a status subresource.
    pub(crate) async fn with_status() -> Self {
        let world = Self::bare();
        world.create_crd(true).await;
        world
    }

    /// A server without the custom resource.
    pub(crate) fn bare() -> Self {
        log_if_wanted();
        let server = Server::builder().controllers(false).build();
        let client = kube::Client::new(server.service(), "default");
        Self { server, journal: Journal::default(), client, calls: Calls::default() }
    }

    pub(crate) async fn create_crd(&self, status_subresource: bool) {
        self.crds()
            .create(
                &PostParams::default(),
                &serde_json::from_value(crd(status_subresource)).expect("a CRD"),
            )
            .await
            .expect("the CRD is created");
    }

    /// Serves the version of the handlers or another one; the objects are kept in both cases.
    pub(crate) async fn serve(&self, is_served: bool) {
        let mut versions = [("v1", is_served), ("v2", !is_served)].map(|(name, is_served)| {
            let mut version = crd(false)["spec"]["versions"][0].take();
            version["name"] = name.into();
            version["served"] = is_served.into();
            version
        });
        versions[1]["storage"] = false.into();
        let patch = Patch::Merge(json!({"spec": {"versions": versions}}));
        let name = "kopfexamples.kopf.dev";
        self.crds().patch(name, &PatchParams::default(), &patch).await.expect("it is edited");
    }

    pub(crate) fn crds(&self) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            api_version: "apiextensions.k8s.io/v1".into(),
            kind: "CustomResourceDefinition".into(),
            plural: "customresourcedefinitions".into(),
        };
        Api::all_with(self.client.clone(), &resource)
    }

    pub(crate) fn api(&self) -> Api<DynamicObject> {
        self.api_in("default")
    }

    pub(crate) fn api_in(&self, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &examples())
    }

    pub(crate) async fn create(&self, name: &str, spec: Value) {
        let object = json!({
            "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
            "metadata": {"name": name}, "spec": spec,
        });
        self.create_from(object).await;
    }

    pub(crate) async fn create_from(&self, object: Value) {
        let object = serde_json::from_value(object).expect("an object");
        self.api().create(&PostParams::default(), &object).await.expect("it is created");
    }

    pub(crate) async fn merge(&self, name: &str, patch: Value) {
        self.api()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .expect("it is patched");
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.api().delete(name, &DeleteParams::default()).await.expect("it is deleted");
    }

    /// The object on the server, or null.
    pub(crate) async fn get(&self, name: &str) -> Value {
        let found = self.api().get_opt(name).await.expect("the server answers");
        found.map_or(Value::Null, |object| serde_json::to_value(object).expect("JSON"))
    }

    pub(crate) fn engine(&self, handlers: Vec<Handler>) -> EngineBuilder {
        let proxy = Proxy { service: self.server.service(), journal: self.journal.clone() };
        let mut settings = Settings::default();
        settings.posting.enabled = false;
        Engine::builder(Registry::from_iter(handlers))
            .client(kube::Client::new(proxy, "default"))
            .settings(settings)
            .clock(Clock::following_tokio("2026-01-01T00:00:00Z".parse().expect("a time")))
    }

    /// Starts an engine and waits until it watches.
    pub(crate) async fn start(&self, handlers: Vec<Handler>) -> Running {
        self.start_built(self.engine(handlers)).await
    }

    pub(crate) async fn start_built(&self, builder: EngineBuilder) -> Running {
        let running = builder.build().start();
        running.settled().await;
        running
    }

    /// A handler that records its call and succeeds.
    pub(crate) fn noting(&self, id: &'static str, kind: HandlerKind) -> Handler {
        self.returning(id, kind, Value::Null)
    }

    /// The same, with a result.
    pub(crate) fn returning(&self, id: &'static str, kind: HandlerKind, result: Value) -> Handler {
        let calls = self.calls.clone();
        handler(id, kind, move |call| {
            calls.note(format!("{id}:{}", call.attempt.retry));
            Ok(match &result {
                Value::Null => Output::Nothing,
                result => Output::Json(result.clone()),
            })
        })
    }

    /// A daemon that records its start and its end among the calls.
    pub(crate) fn polite_daemon(&self) -> Handler {
        polite_daemon(&self.calls)
    }

    /// All writes of the engine so far, without events.
    pub(crate) fn writes(&self) -> Vec<Recorded> {
        let mut requests = self.journal.requests();
        requests.retain(|request| request.method != Method::GET);
        requests
    }

    /// Waits until a condition on the object holds.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        condition: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut pause = MOMENT;
        while pause < PATIENCE {
            let object = self.get(name).await;
            if condition(&object) {
                return object;
            }
            tokio::time::sleep(pause).await;
            pause = pause.mul_f64(1.05);
        }
        panic!("{what} did not happen: {:#}", self.get(name).await);
    }

    /// Waits until the object is handled in its current state.
    pub(crate) async fn until_handled(&self, name: &str) -> Value {
        self.until(name, "the handling", |object| {
            last_handled(object).is_some_and(|handled| handled["spec"] == object["spec"])
        })
        .await
    }
}

/// Ends the process if it is not dropped in time: on a controlled clock no time passes while a task
/// is busy, so a test with an operator that never rests would never end.
pub(crate) struct Watchdog {
    _alive: std::sync::mpsc::Sender<()>,
}

impl Watchdog {
    pub(crate) fn new(trouble: &'static str) -> Self {
        let (alive, watched) = std::sync::mpsc::channel::<()>();
        std::thread::spawn(move || {
            let heard = watched.recv_timeout(Duration::from_secs(60));
            if heard == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                eprintln!("{trouble}");
                std::process::abort();
            }
        });
        Self { _alive: alive }
    }
}

/// Shows the logs of a test if `$TEST_LOG` is set.
pub(crate) fn log_if_wanted() {
    if std::env::var_os("TEST_LOG").is_some() {
        let _ = tracing_subscriber::fmt()
            .with_test_writer()
            .with_max_level(tracing::Level::DEBUG)
            .try_init();
    }
}

/// Waits until a condition holds.
pub(crate) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let mut pause = MOMENT;
    while pause < PATIENCE {
        if condition() {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = pause.mul_f64(1.05);
    }
    panic!("{what} did not happen");
}

/// Lets everything run that can run now.
pub(crate) async fn quiesce() {
    tokio::time::sleep(Duration::from_millis(300)).await;
}

pub(crate) fn last_handled(object: &Value) -> Option<Value> {
    let text = object["metadata"]["annotations"][LAST_HANDLED].as_str()?;
    serde_json::from_str(text).ok()
}

pub(crate) fn handler(
    id: &str,
    kind: HandlerKind,
    function: impl Fn(Call) -> Returned + Send + Sync + 'static,
) -> Handler {
    let selector = Selector::parse(&["kopf.dev", "v1", "kopfexamples"]).expect("a selector");
    Handler::new(id, kind, Arc::new(Closure(Arc::new(function)))).for_resources(selector)
}

pub(crate) fn async_handler<F, R>(id: &str, kind: HandlerKind, function: F) -> Handler
where
    F: Fn(Call) -> R + Send + Sync + 'static,
    R: Future<Output = Returned> + Send + 'static,
{
    let selector = Selector::parse(&["kopf.dev", "v1", "kopfexamples"]).expect("a selector");
    let function: Arc<AsyncFunction> = Arc::new(move |call| Box::pin(function(call)));
    Handler::new(id, kind, Arc::new(AsyncClosure(function))).for_resources(selector)
}

/// A daemon that records its start, and its end when it is asked to stop.
pub(crate) fn polite_daemon(calls: &Calls) -> Handler {
    let calls = calls.clone();
    async_handler("daemon", HandlerKind::Daemon(DaemonOptions::default()), move |call| {
        let calls = calls.clone();
        async move {
            calls.note("begun");
            call.stopped.expect("a stop flag").wait(None).await;
            calls.note("ended");
            Ok(Output::Nothing)
        }
    })
}

pub(crate) fn temporary(message: &str, delay: f64) -> HandlerError {
    HandlerError::Temporary { message: message.into(), delay: Some(Duration::from_secs_f64(delay)) }
}

impl Calls {
    pub(crate) fn note(&self, text: impl Into<String>) {
        self.0.lock().push(text.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().len()
    }
}
