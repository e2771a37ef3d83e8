//! One operator: an engine on its own threads, and the queue to Python.

use std::net::ToSocketAddrs as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use kopf_cli::telemetry::Telemetry;
use kopf_client::LoginError;
use kopf_core::Registry;
use kopf_core::handler::Handler;
use kopf_core::invoke::{CallbackError, Indexes, OperatorContext};
use kopf_core::lifecycle::Lifecycle;
use kopf_core::occasion::{Occasion, Subject};
use kopf_core::settings::Settings;
use kopf_engine::{Engine, EngineError, NamespacePattern, ProbesEndpoint, ReviewError, ReviewGate};
use kopf_model::{Object, Resource};
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::ask::{Asker, Query};
use crate::declare::Declaration;
use crate::index::NativeIndex;
use crate::logs;
use crate::queue::{Item, Queue};
use crate::settings;
use crate::stillness::Moving;
use crate::threads::Threads;
use crate::world::{self, Place, World};

/// The threads of an engine, unless `KOPF_ENGINE_THREADS` says otherwise.
const THREADS: usize = 2;

/// How long the threads of an engine may take to end.
const CLOSING_GRACE: Duration = Duration::from_secs(2);

thread_local! {
    /// Keeps the sink of the operator for the lifetime of a thread.
    static SINK: std::cell::RefCell<Option<tracing::dispatcher::DefaultGuard>> =
        const { std::cell::RefCell::new(None) };
}

/// All that Python says about an operator.
#[derive(Deserialize)]
pub(crate) struct Declared {
    handlers: Vec<Declaration>,
    settings: Map<String, Value>,
    #[serde(default)]
    namespaces: Vec<Namespaces>,
    identity: Option<String>,
    liveness_endpoint: Option<Liveness>,
    lifecycle: Option<String>,
}

/// The handlers that startup handlers have registered, and the number of the first one.
#[derive(Deserialize)]
struct LateHandlers {
    first: usize,
    handlers: Vec<Declaration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Namespaces {
    Glob(String),
    Regex(String),
}

#[derive(Deserialize)]
struct Liveness {
    host: String,
    port: u16,
    path: String,
}

/// Why an engine has ended by itself.
struct Ending {
    /// `activity`, `login` or `other`.
    kind: &'static str,
    handler: Option<String>,
    message: String,
}

/// The startup handlers are done and the cluster is reached.
struct Ready;

impl Item for Ready {
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(("ready",).into_pyobject(py)?.into_any())
    }
}

/// The engine has ended.
struct Ended {
    error: Option<Ending>,
}

impl Item for Ended {
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let error = self.error.map(|it| (it.kind, it.handler, it.message));
        Ok(("ended", error).into_pyobject(py)?.into_any())
    }
}

/// A review is answered.
struct Reviewed {
    id: u64,
    answer: Result<Value, ReviewError>,
}

impl Item for Reviewed {
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let error = match self.answer {
            Ok(answer) => {
                let item = ("reviewed", self.id, answer.to_string(), py.None());
                return Ok(item.into_pyobject(py)?.into_any());
            }
            Err(error) => error,
        };
        let kind = match &error {
            ReviewError::Incomplete(_) => "incomplete",
            ReviewError::Unknown(_) => "unknown",
            ReviewError::Callback(CallbackError { object: Some(object), .. }) => {
                let exception = object.0.downcast_ref::<Py<PyAny>>();
                let item = ("reviewed", self.id, "failed", exception);
                return Ok(item.into_pyobject(py)?.into_any());
            }
            _ => "early",
        };
        Ok(("reviewed", self.id, kind, error.to_string()).into_pyobject(py)?.into_any())
    }
}

/// An operator.
#[pyclass(frozen, module = "kopf._native")]
pub(crate) struct Operator {
    queue: Arc<Queue>,
    level: Arc<AtomicU8>,
    context: Arc<OperatorContext>,
    indexes: Arc<Indexes>,
    stop: watch::Sender<bool>,
    gate: ReviewGate,
    engine: Mutex<Option<Engine>>,
    home: Mutex<Option<Home>>,
    /// Lets virtual time pass while it ends.
    ending: Mutex<Option<Moving>>,
    /// Where it runs in a test.
    place: Option<Place>,
}

/// What runs the engine.
enum Home {
    /// Its own threads, and the collector of traces, if there is one.
    Own(Threads, Option<Telemetry>),
    /// The thread of a world, with others.
    World { handle: Handle, engine: AbortHandle },
}

impl Home {
    /// The runtime; none in a forked process.
    fn handle(&self) -> Option<&Handle> {
        match self {
            Self::Own(threads, _) => threads.runtime().map(Runtime::handle),
            Self::World { handle, .. } => Some(handle),
        }
    }

    fn close(self) {
        match self {
            Self::Own(threads, telemetry) => {
                threads.shut_down(CLOSING_GRACE);
                // Sends the last spans.
                drop(telemetry);
            }
            Self::World { engine, .. } => engine.abort(),
        }
    }
}

impl Declared {
    /// Reads a declaration in JSON.
    pub(crate) fn parse(declaration: &str) -> PyResult<Self> {
        serde_json::from_str(declaration).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The handlers and the settings.
    pub(crate) fn understand(&mut self, queue: &Arc<Queue>) -> PyResult<(Vec<Handler>, Settings)> {
        let invalid = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
        let mut handlers = Vec::new();
        for (index, declaration) in std::mem::take(&mut self.handlers).into_iter().enumerate() {
            let handler = declaration.into_handler(index, queue);
            handlers.push(handler.map_err(|error| invalid(&error))?);
        }
        let mut settings = Settings::default();
        // Visible as in Kopf.
        settings.watching.managed_fields = true;
        settings.posting.count_repeated = false;
        settings.admission.exempt_own_namespace = false;
        settings::apply(&mut settings, &self.settings, &Asker::new(Arc::clone(queue)))
            .map_err(|error| invalid(&error))?;
        Ok((handlers, settings))
    }
}

impl Operator {
    fn asker(&self) -> Asker {
        Asker::new(Arc::clone(&self.queue))
    }

    fn dispatch(&self, telemetry: Option<&Telemetry>) -> tracing::Dispatch {
        logs::dispatch(Arc::clone(&self.queue), Arc::clone(&self.level), telemetry)
    }

    /// Threads of the engine that log to Python.
    fn runtime(&self, telemetry: Option<&Telemetry>) -> std::io::Result<Runtime> {
        let dispatch = self.dispatch(telemetry);
        let threads = std::env::var("KOPF_ENGINE_THREADS").ok().and_then(|it| it.parse().ok());
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads.unwrap_or(THREADS).max(1))
            .thread_name("kopf-engine")
            .on_thread_start(move || {
                let guard = tracing::dispatcher::set_default(&dispatch);
                SINK.with(|sink| *sink.borrow_mut() = Some(guard));
            })
            .on_thread_stop(|| {
                SINK.with(|sink| drop(sink.borrow_mut().take()));
            })
            .enable_all()
            .build()
    }

    /// Runs the engine there; tells Python when it is ready, and when it has ended.
    fn launch(&self, engine: Engine, handle: &Handle) -> AbortHandle {
        let queue = Arc::clone(&self.queue);
        let mut stop = self.stop.subscribe();
        let mut ready = engine.ready();
        let announced = Arc::clone(&self.queue);
        let starting = self.place.as_ref().map(|place| (place.stillness.moving(), engine.status()));
        handle.spawn(async move {
            if ready.wait_for(|is_ready| *is_ready).await.is_ok() {
                if let Some((_moving, status)) = starting {
                    world::until_settled(&status).await;
                }
                announced.push(Ready);
            }
        });
        let stopping = async move {
            // The end of the operator means the same as a request.
            let _ = stop.wait_for(|is_stopping| *is_stopping).await;
        };
        let running = handle.spawn(engine.run(stopping));
        let abort = running.abort_handle();
        handle.spawn(async move {
            let error = match running.await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(Ending::from(&error)),
                Err(error) => {
                    let message = format!("the engine has ended unexpectedly: {error}");
                    Some(Ending { kind: "other", handler: None, message })
                }
            };
            queue.push(Ended { error });
        });
        abort
    }
}

#[pymethods]
impl Operator {
    /// An operator from its declaration in JSON; does not run yet.
    #[new]
    #[pyo3(signature = (declaration, world = None))]
    fn new(declaration: &str, world: Option<PyRef<'_, World>>) -> PyResult<Self> {
        let invalid = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
        let mut declared = Declared::parse(declaration)?;
        let queue = Arc::new(Queue::new()?);
        let asker = Asker::new(Arc::clone(&queue));
        let (handlers, settings) = declared.understand(&queue)?;
        let registry: Registry = handlers.into_iter().collect();
        let mut namespaces = Vec::new();
        for pattern in std::mem::take(&mut declared.namespaces) {
            namespaces.push(match pattern {
                Namespaces::Glob(text) => NamespacePattern::new(&text),
                Namespaces::Regex(text) => {
                    NamespacePattern::regex(&text).map_err(|error| invalid(&error))?
                }
            });
        }
        let mut builder = Engine::builder(registry)
            .settings(settings)
            .lifecycle(lifecycle(declared.lifecycle.as_deref(), &asker))
            .namespaces(namespaces)
            .late_handlers(late_handlers(&queue));
        if let Some(identity) = declared.identity.take() {
            builder = builder.identity(identity);
        }
        if let Some(Liveness { host, port, path }) = declared.liveness_endpoint.take() {
            let address = (host.as_str(), port).to_socket_addrs()?.next();
            let address =
                address.ok_or_else(|| invalid(&"the liveness endpoint has no address"))?;
            builder = builder.probes(ProbesEndpoint::new(address, path));
        }
        let place = world.map(|world| world.place()).transpose()?;
        if let Some(place) = &place {
            builder = place.equip(builder);
            queue.live_with(Arc::clone(&place.stillness));
        }
        let gate = ReviewGate::default();
        let engine = builder.review_gate(gate.clone()).build();
        Ok(Self {
            queue,
            level: Arc::new(AtomicU8::new(0)),
            context: engine.context(),
            indexes: engine.indexes(),
            stop: watch::Sender::new(false),
            gate,
            engine: Mutex::new(Some(engine)),
            home: Mutex::new(None),
            ending: Mutex::new(None),
            place,
        })
    }

    /// The descriptor that is readable while there are items.
    fn fileno(&self) -> i32 {
        self.queue.fileno()
    }

    /// The least level of lines that are wanted, as a number of `logging`.
    fn set_log_level(&self, level: u8) {
        self.level.store(level, Ordering::Relaxed);
    }

    /// Starts the engine: on its own threads, or in its world.
    fn start(&self) -> PyResult<()> {
        let Some(engine) = self.engine.lock().take() else {
            return Err(PyRuntimeError::new_err("the operator was started already"));
        };
        let home = match &self.place {
            Some(place) => {
                place.log_to(self.dispatch(None));
                let handle = place.handle.clone();
                let engine = self.launch(engine, &handle);
                Home::World { handle, engine }
            }
            None => {
                let service = std::env::var("OTEL_SERVICE_NAME");
                let service = service.as_deref().unwrap_or("kopf");
                let telemetry = Telemetry::from_environment(service)
                    .map_err(|error| PyValueError::new_err(chain(&error)))?;
                let runtime = self.runtime(telemetry.as_ref())?;
                self.launch(engine, runtime.handle());
                Home::Own(Threads::new(runtime), telemetry)
            }
        };
        *self.home.lock() = Some(home);
        Ok(())
    }

    /// Asks for the end.
    fn stop(&self) {
        if let Some(place) = &self.place {
            // Ending in order may take time.
            *self.ending.lock() = Some(place.stillness.moving());
        }
        self.stop.send_replace(true);
    }

    /// Ends all threads; nothing is finished or written any more.
    fn close(&self, py: Python<'_>) {
        self.stop.send_replace(true);
        self.queue.close();
        let home = self.home.lock().take();
        let engine = self.engine.lock().take();
        let ending = self.ending.lock().take();
        py.detach(|| {
            drop((engine, ending));
            if let Some(home) = home {
                home.close();
            }
        });
    }

    /// Holds back the ends of calls until `release()`.
    fn hold(&self) {
        self.queue.hold_back();
    }

    /// Gives the ends of calls to the engine.
    fn release(&self) {
        self.queue.release();
    }

    /// Takes all items: calls, and tuples that begin with the name of their kind.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let (items, dropped) = self.queue.take();
        let list = PyList::empty(py);
        for item in items {
            list.append(item.into_python(py)?)?;
        }
        if dropped > 0 {
            list.append(("dropped", dropped))?;
        }
        Ok(list)
    }

    /// Takes over settings by dotted names; false if the engine reads them right now.
    fn set_settings(&self, values: &str) -> PyResult<bool> {
        let values: Map<String, Value> = serde_json::from_str(values)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        // Never waits: the engine might wait for Python while it holds the lock.
        let Some(mut settings) = self.context.settings.try_write() else { return Ok(false) };
        settings::apply(&mut settings, &values, &self.asker())
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(true)
    }

    /// Submits a review in JSON; the answer is an item of the queue with this number.
    fn review(
        &self,
        id: u64,
        request: &str,
        webhook: Option<String>,
        headers: Vec<(String, String)>,
    ) -> PyResult<()> {
        let request: Value = serde_json::from_str(request)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let home = self.home.lock();
        let Some(runtime) = home.as_ref().and_then(Home::handle) else {
            return Err(PyRuntimeError::new_err("the operator does not run"));
        };
        let (gate, queue) = (self.gate.clone(), Arc::clone(&self.queue));
        runtime.spawn(async move {
            let answer = gate.review(&request, webhook.as_deref(), headers).await;
            queue.push(Reviewed { id, answer });
        });
        Ok(())
    }

    /// Tells how the cluster reaches the server of reviews, in JSON, and the name of the webhook
    /// configurations to keep up to date, if any.
    fn point_reviews(&self, client_config: &str, managed: Option<String>) -> PyResult<()> {
        let client_config: Value = serde_json::from_str(client_config)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        self.gate.point(client_config, managed);
        Ok(())
    }

    /// One index by its name.
    fn index(&self, name: String) -> NativeIndex {
        NativeIndex::new(Arc::clone(&self.indexes), name)
    }

    /// Posts a Kubernetes event about an object; the reference is JSON.
    fn post_event(&self, reference: &str, kind: &str, reason: &str, message: &str) -> PyResult<()> {
        let reference: Value = serde_json::from_str(reference)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let field = |name: &str| reference.get(name).cloned().unwrap_or_default();
        let mut metadata = Map::new();
        for name in ["name", "namespace", "uid", "resourceVersion"] {
            if let Some(value) = reference.get(name).filter(|value| !value.is_null()) {
                metadata.insert(name.to_owned(), value.clone());
            }
        }
        let object = Object::from_value(json!({
            "apiVersion": field("apiVersion"), "kind": field("kind"), "metadata": metadata,
        }));
        let resource = Arc::new(Resource::cluster_wide("", "", object.kind()));
        self.context.recorder.record(&Subject { resource, object }, kind, reason, message);
        Ok(())
    }
}

impl From<&EngineError> for Ending {
    fn from(error: &EngineError) -> Self {
        let (kind, handler) = match error {
            EngineError::Activity { source, .. } => ("activity", Some(source.handler.to_string())),
            EngineError::Login(LoginError::Handler { handler, .. }) => {
                ("login", Some(handler.clone()))
            }
            EngineError::Login(_) => ("login", None),
            _ => ("other", None),
        };
        Self { kind, handler, message: chain(error) }
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    message
}

/// Asks Python for the handlers that startup handlers have registered.
fn late_handlers(
    queue: &Arc<Queue>,
) -> impl FnOnce() -> Result<Vec<Handler>, String> + Send + Sync + 'static {
    let queue = Arc::clone(queue);
    move || {
        let asker = Asker::new(Arc::clone(&queue));
        let answer = asker.ask(Query { kind: "late_handlers", ..Query::default() });
        let answer = answer.map_err(|error| error.message)?;
        let late = LateHandlers::deserialize(answer).map_err(|error| error.to_string())?;
        let into_handler = |(index, declaration): (usize, Declaration)| {
            declaration.into_handler(index, &queue).map_err(|error| error.to_string())
        };
        (late.first..).zip(late.handlers).map(into_handler).collect()
    }
}

fn lifecycle(name: Option<&str>, asker: &Asker) -> Lifecycle {
    match name.unwrap_or("asap") {
        "asap" => Lifecycle::Asap,
        "all_at_once" => Lifecycle::AllAtOnce,
        "one_by_one" => Lifecycle::OneByOne,
        "randomized" => Lifecycle::Randomized,
        "shuffled" => Lifecycle::Shuffled,
        _ => {
            let asker = asker.clone();
            Lifecycle::Custom(Arc::new(move |due: Vec<Arc<Handler>>, state| {
                let retries: Map<String, Value> = due
                    .iter()
                    .map(|handler| (handler.id.to_string(), state.retries(&handler.id).into()))
                    .collect();
                let value = Some(Value::Object(retries));
                let choosing = kopf_engine::callbacks::choosing();
                let matter = choosing
                    .map(|it| asker.matter(&it.subject, &Occasion::Change(it.change.clone())));
                let query = Query { kind: "lifecycle", value, matter, ..Query::default() };
                let chosen = asker.ask(query)?;
                let chosen = chosen.as_array().cloned().unwrap_or_default();
                let find = |id: &Value| due.iter().find(|handler| id == &*handler.id).cloned();
                Ok(chosen.iter().filter_map(find).collect())
            }))
        }
    }
}
