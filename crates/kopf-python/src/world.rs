//! The world of one test: a server and operators on one thread, with a virtual clock.
//!
//! The server is forked from a prepared one in microseconds. Time moves only while a test waits
//! for it here, and stands still while Python works. Requests of the test are served on the thread
//! of the test: that of the world may wait for Python at the same time.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use kopf_apiserver::{RequestMatcher, User};
use kopf_cli::definitions;
use kopf_engine::{Clock, EngineBuilder, StatusHandle};
use kopf_testing::VirtualClock;
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tower::Service as _;

use crate::fault::FaultDeclaration;
use crate::stillness::Stillness;
use crate::wanted;

/// The namespace and the account of operators, as in tests of Rust.
const NAMESPACE: &str = "default";
const OPERATOR: &str = "operator";

/// How long a test waits for its operator to watch.
const BEGINNING: Duration = Duration::from_secs(60);
/// How often it looks.
const A_MOMENT: Duration = Duration::from_millis(5);

/// How long the thread of a world may take to end.
const CLOSING_GRACE: Duration = Duration::from_secs(2);

thread_local! {
    /// Keeps the sink of the operator that has started last in the world of this thread.
    static SINK: std::cell::RefCell<Option<tracing::dispatcher::DefaultGuard>> =
        const { std::cell::RefCell::new(None) };
}

/// A world.
#[pyclass(frozen, module = "kopf._native")]
pub(crate) struct World {
    running: Mutex<Option<Running>>,
}

struct Running {
    place: Place,
    end: oneshot::Sender<()>,
    thread: JoinHandle<()>,
    process: u32,
}

/// Where operators run in a world.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) handle: Handle,
    pub(crate) stillness: Arc<Stillness>,
    world: kopf_testing::World,
}

impl Place {
    /// An operator that works with this world.
    pub(crate) fn equip(&self, operator: EngineBuilder) -> EngineBuilder {
        let _entered = self.handle.enter();
        let mut user = User::service_account(NAMESPACE, OPERATOR);
        user.groups.push("system:masters".into());
        let client = kube::Client::new(self.world.server().service_as(user), NAMESPACE);
        operator.client(client).clock(Clock::following_tokio(VirtualClock.now()))
    }

    /// Sends what is logged in this world to a subscriber.
    pub(crate) fn log_to(&self, dispatch: tracing::Dispatch) {
        self.handle.spawn(async move {
            SINK.with(|sink| {
                // The former one first: a guard restores what was there before it.
                drop(sink.borrow_mut().take());
                *sink.borrow_mut() = Some(tracing::dispatcher::set_default(&dispatch));
            });
        });
    }
}

/// Waits until the watches of an operator have listed what there is, as far as the server lets them.
pub(crate) async fn until_settled(status: &StatusHandle) {
    let is_settled = async {
        while !status.snapshot().settled {
            tokio::time::sleep(A_MOMENT).await;
        }
    };
    // The test itself waits for what takes longer.
    let _ = tokio::time::timeout(BEGINNING, is_settled).await;
}

/// Lives on the thread of the world.
fn inhabit(arrived: &mpsc::SyncSender<std::io::Result<Place>>, ended: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .thread_name("kopf-world")
        .enable_all()
        .start_paused(true)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            // The caller that waits for it has the error.
            let _ = arrived.send(Err(error));
            return;
        }
    };
    runtime.block_on(async {
        let handle = Handle::current();
        let stillness = Stillness::new(handle.clone());
        let world = kopf_testing::World::new();
        drop(world.client());
        let place = Place { handle, stillness: Arc::clone(&stillness), world };
        if arrived.send(Ok(place)).is_ok() {
            let _ = ended.await;
        }
        stillness.end();
    });
    SINK.with(|sink| drop(sink.borrow_mut().take()));
    runtime.shutdown_timeout(CLOSING_GRACE);
}

impl World {
    /// Where operators run.
    pub(crate) fn place(&self) -> PyResult<Place> {
        let running = self.running.lock();
        let running = running.as_ref().filter(|it| it.process == std::process::id());
        let place = running.map(|running| running.place.clone());
        place.ok_or_else(|| PyRuntimeError::new_err("the world has ended"))
    }

    /// Waits for something that happens on the thread of the world, while time passes.
    fn wait<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> PyResult<T> {
        let place = self.place()?;
        let (done, is_done) = mpsc::sync_channel(1);
        let stillness = Arc::clone(&place.stillness);
        place.handle.spawn(async move {
            let moving = stillness.moving();
            let outcome = work.await;
            drop(moving);
            // The caller may have given up.
            let _ = done.send(outcome);
        });
        py.detach(move || is_done.recv())
            .map_err(|_| PyRuntimeError::new_err("the world has ended"))
    }
}

#[pymethods]
impl World {
    /// A separate world, in which time stands still.
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        let (arrived, arriving) = mpsc::sync_channel(1);
        let (end, ended) = oneshot::channel();
        let name = "kopf-world".to_owned();
        let thread =
            std::thread::Builder::new().name(name).spawn(move || inhabit(&arrived, ended))?;
        let place = py.detach(move || arriving.recv());
        let place = place.map_err(|_| PyRuntimeError::new_err("the world could not be made"))??;
        let process = std::process::id();
        Ok(Self { running: Mutex::new(Some(Running { place, end, thread, process })) })
    }

    /// Applies definitions, defines the resources that selectors name and the server does not know,
    /// then loads objects; all are JSON.
    fn install(
        &self,
        py: Python<'_>,
        definitions: &str,
        selectors: &str,
        documents: &str,
    ) -> PyResult<()> {
        let (wanted, documents) = wanted::parse(definitions, selectors, documents)?;
        let client = self.place()?.world.client();
        let outcome =
            self.wait(py, async move { definitions::prepare(&client, wanted, documents).await })?;
        outcome.map(drop).map_err(|failure| PyRuntimeError::new_err(failure.render()))
    }

    /// Makes a request as the administrator; gives the code and the answer.
    #[pyo3(signature = (method, path, body = None, content_type = "application/json"))]
    fn request(
        &self,
        py: Python<'_>,
        method: &str,
        path: &str,
        body: Option<String>,
        content_type: &str,
    ) -> PyResult<(u16, String)> {
        let place = self.place()?;
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type)
            .body(Full::new(Bytes::from(body.unwrap_or_default())))
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let requesting = async {
            let Ok(response) = place.world.server().service().call(request).await;
            let code = response.status().as_u16();
            let Ok(body) = response.into_body().collect().await;
            (code, String::from_utf8_lossy(&body.to_bytes()).into_owned())
        };
        Ok(py.detach(|| place.handle.block_on(requesting)))
    }

    /// Waits until there is nothing to do now.
    fn settled(&self, py: Python<'_>) -> PyResult<()> {
        let world = self.place()?.world;
        self.wait(py, async move { world.settled().await })
    }

    /// Lets this many seconds pass, with everything that happens in them.
    fn advance(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let time = Duration::try_from_secs_f64(seconds)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let world = self.place()?.world;
        self.wait(py, async move { world.advance(time).await })
    }

    /// The time of the world, in seconds since 1970.
    fn now(&self) -> PyResult<f64> {
        let place = self.place()?;
        let _entered = place.handle.enter();
        Ok(VirtualClock.now().as_nanosecond() as f64 / 1e9)
    }

    /// Lets real time pass from now on.
    fn in_real_time(&self, py: Python<'_>) -> PyResult<()> {
        let world = self.place()?.world;
        self.wait(py, async move { world.in_real_time() })
    }

    /// Makes requests of operators go wrong; the fault is JSON.
    fn fault(&self, fault: &str) -> PyResult<()> {
        let fault: FaultDeclaration = serde_json::from_str(fault)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        self.place()?.world.fault(fault.build().map_err(PyValueError::new_err)?);
        Ok(())
    }

    /// Ends all faults.
    fn heal(&self) -> PyResult<()> {
        self.place()?.world.heal();
        Ok(())
    }

    /// The requests of operators about objects, in JSON, oldest first.
    fn requests(&self) -> PyResult<String> {
        let user = User::service_account(NAMESPACE, OPERATOR).name;
        let place = self.place()?;
        let logged = place.world.server().requests(&RequestMatcher::any().user(user));
        let logged: Vec<serde_json::Value> = logged.iter().map(crate::fault::logged).collect();
        Ok(serde_json::Value::Array(logged).to_string())
    }

    /// Forgets the requests so far.
    fn forget_requests(&self) -> PyResult<()> {
        self.place()?.world.forget_requests();
        Ok(())
    }

    /// Ends the world with everything in it.
    fn stop(&self, py: Python<'_>) {
        let Some(running) = self.running.lock().take() else { return };
        if running.process != std::process::id() {
            // A forked process has none of the threads.
            std::mem::forget(running);
            return;
        }
        let Running { place, end, thread, .. } = running;
        drop((place, end));
        // It may have panicked; the panic has its own message.
        let _ = py.detach(|| thread.join());
    }
}
