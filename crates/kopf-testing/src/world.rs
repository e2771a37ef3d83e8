//! A cluster for one test: forked from a prepared one, with a clock that the test controls.
//!
//! Owns the server, the clients and the operators in it. Objects are read and written in `objects`
//! and `dynamic`; the actions of operators are in `requests`, `posted`, `logs`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kopf_apiserver::{Fault, Server, User};
use kopf_core::rights::Right;
use kopf_engine::{Clock, EngineBuilder, Running};
use kube::Client;
use parking_lot::Mutex;
use serde_json::Value;

use crate::account::{NAMESPACE, OPERATOR, Rights};
use crate::clock::VirtualClock;
use crate::disturbances::Disturbances;
use crate::error::WorldError;
use crate::logs::Logs;
use crate::operator_handle::OperatorHandle;
use crate::posted::PostedEvent;
use crate::prepared_server::{Definitions, PreparedServer, apply_definition, runtime};
use crate::program::{Life, Program, RunningProgram};
use crate::requests::Requests;
use crate::reviews;
use crate::snapshot::Snapshot;
use crate::transport::Transport;

pub(crate) mod dynamic;
pub(crate) mod objects;

/// The real time that `until` waits for a condition if there are other processes.
const PATIENCE_IN_REAL_TIME: Duration = Duration::from_secs(60);
/// The virtual time that `until` waits for a condition.
const PATIENCE: Duration = Duration::from_secs(600);
/// The same while the operator is tortured.
const PATIENCE_UNDER_TORTURE: Duration = Duration::from_secs(7200);
/// Shorter than any relevant delay; with paused time, it passes when nothing else can run.
const A_MOMENT: Duration = Duration::from_millis(1);
/// Tortured operators are done when nothing has changed for this long: longer than default retries.
const CALM: Duration = Duration::from_secs(180);
/// The same in real time, where a test cannot wait so long.
const CALM_IN_REAL_TIME: Duration = Duration::from_secs(6);
/// How long a world may take to become calm; with timers that write, it never does.
const CALM_PATIENCE: Duration = Duration::from_secs(1800);

/// A cluster for one test; clones are the same cluster.
#[derive(Clone)]
pub struct World(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    // Created on first use: if an operator is started before anything else, a server that already
    // has its definitions is used.
    prepared_server: OnceLock<PreparedServer>,
    pub(crate) logs: Logs,
    pub(crate) rights: Rights,
    pub(crate) disturbances: Option<Arc<Disturbances>>,
    // Written when an operator starts, read by the tests of rights.
    pub(crate) granted: Mutex<Vec<Right>>,
    // All running operators, to be stopped before the final state is read.
    pub(crate) operators: Mutex<Vec<OperatorHandle>>,
    // The same for programs, and the program that runs instead of operators, if any.
    pub(crate) programs: Mutex<Vec<Arc<Life>>>,
    pub(crate) program: Option<Program>,
    // Set by the test, read by code that waits.
    is_real: AtomicBool,
}

/// Runs a test in its own world, with paused time.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
///
/// kopf_testing::run(|world| async move {
///     let map: ConfigMap = serde_json::from_value(serde_json::json!({
///         "metadata": {"name": "a"}, "data": {"key": "value"},
///     }))?;
///     world.create(&map).await?;
///     world.advance(std::time::Duration::from_secs(3600)).await; // takes no time
///     assert_eq!(world.get::<ConfigMap>("a").await?.data, map.data);
///     Ok::<(), Box<dyn std::error::Error>>(())
/// }).expect("nothing is refused");
/// ```
///
/// # Panics
/// Panics if the runtime cannot be created or the test panics.
pub fn run<T, F: Future<Output = T>>(test: impl FnOnce(World) -> F) -> T {
    in_world(Rights::All, None, async |world| test(world).await)
}

/// Runs a test in a world with these properties; prints the operator's log if it panics.
pub(crate) fn in_world<T>(
    rights: Rights,
    disturbances: Option<Arc<Disturbances>>,
    test: impl AsyncFnOnce(World) -> T,
) -> T {
    in_world_of(None, rights, disturbances, test)
}

/// The same, with a program instead of operators.
pub(crate) fn in_world_of<T>(
    program: Option<Program>,
    rights: Rights,
    disturbances: Option<Arc<Disturbances>>,
    test: impl AsyncFnOnce(World) -> T,
) -> T {
    let logs = Logs::default();
    let _capturing = logs.capture();
    let _showing = logs.shown_on_panic();
    runtime(true)
        .block_on(async { test(World::with(rights, disturbances, program, logs.clone())).await })
}

impl World {
    /// Creates a world; needs a tokio runtime, preferably one with paused time (see [`run`]).
    #[must_use]
    pub fn new() -> Self {
        Self::with(Rights::All, None, None, Logs::default())
    }

    fn with(
        rights: Rights,
        disturbances: Option<Arc<Disturbances>>,
        program: Option<Program>,
        logs: Logs,
    ) -> Self {
        let (granted, operators) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner {
            prepared_server: OnceLock::new(),
            logs,
            rights,
            disturbances,
            granted,
            operators,
            programs: Mutex::default(),
            program,
            is_real: AtomicBool::new(false),
        }))
    }

    fn prepared_server(&self) -> &PreparedServer {
        self.0.prepared_server.get_or_init(|| PreparedServer::plain(self.0.rights))
    }

    /// The API server: lifecycles of Pods, controllers, users, webhooks.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.prepared_server().server
    }

    /// A client with all rights, whose requests are not counted as the operator's.
    #[must_use]
    pub fn client(&self) -> Client {
        self.prepared_server().client.clone()
    }

    /// Starts an operator in this world, with its definitions, and waits until it watches.
    ///
    /// Takes an engine builder, or anything that converts into one, such as `kopf::Operator`. The
    /// operator runs until the returned handle is dropped.
    ///
    /// # Panics
    /// Panics if the server rejects a definition of the operator, and under torture, which needs
    /// [`World::operate`] to restart the operator after a crash.
    pub async fn start(&self, operator: impl Into<EngineBuilder>) -> Running {
        let is_tortured = self.0.disturbances.is_some();
        assert!(
            !is_tortured,
            "under torture use `world.operate(operator)`, which can start it again"
        );
        let operator = operator.into();
        self.prepare_for(&operator).await;
        let (running, transport) = self.spawn_operator(operator);
        running.settled().await;
        // If it takes longer, the test itself waits.
        let _ = tokio::time::timeout(self.patience(), transport.is_asked()).await;
        running
    }

    /// Runs an operator in this world until the world ends, and restarts it after each crash.
    ///
    /// Takes the function that creates the operator. Waits until it watches. In the rounds of
    /// [`Program::kill_test`](crate::Program::kill_test), the program is started instead.
    ///
    /// # Panics
    /// Panics if the server rejects a definition of the operator.
    pub async fn operate<O: Into<EngineBuilder> + 'static>(
        &self,
        operator: impl Fn() -> O + Send + 'static,
    ) -> OperatorHandle {
        if let Some(program) = self.0.program.clone() {
            let operator = operator().into();
            let installed = Definitions::implied_by(&operator).install(&self.client()).await;
            installed.expect("the server accepts definitions that allow everything");
            return OperatorHandle::of(self.launch(program).await);
        }
        self.prepare_for(&operator().into()).await;
        let world = self.clone();
        let spawn = move || world.spawn_operator(operator().into());
        let handle = OperatorHandle::start(spawn).await;
        self.0.operators.lock().push(handle.clone());
        handle
    }

    /// Installs the definitions of the operator, and grants its rights.
    async fn prepare_for(&self, operator: &EngineBuilder) {
        let definitions = Definitions::of(operator);
        if !self.has_prepared(&definitions) {
            let installed = definitions.install(&self.client()).await;
            installed.expect("the server accepts derived definitions");
        }
        let rights = operator.rights();
        for document in self.0.rights.documents(&rights) {
            self.apply(&document).await.expect("an administrator may grant rights");
        }
        *self.0.granted.lock() = rights;
    }

    /// Whether everything is defined because nothing has happened here yet and a prepared server
    /// could be used.
    fn has_prepared(&self, definitions: &Definitions) -> bool {
        let is_blank = self.0.prepared_server.get().is_none();
        let prepared_server =
            is_blank.then(|| PreparedServer::with(self.0.rights, definitions)).flatten();
        prepared_server
            .is_some_and(|prepared_server| self.0.prepared_server.set(prepared_server).is_ok())
    }

    /// Starts an operator behind its own transport.
    pub(crate) fn spawn_operator(&self, operator: EngineBuilder) -> (Running, Transport) {
        let mut user = User::service_account(NAMESPACE, OPERATOR);
        if self.0.rights == Rights::All {
            user.groups.push("system:masters".into());
        }
        let transport = Transport::new(self.server().service_as(user), self.0.disturbances.clone());
        let clock = Clock::following_tokio(VirtualClock.now());
        let (operator, transport) = reviews::connect(self.server(), operator, transport);
        let client = Client::new(transport.clone(), NAMESPACE);
        (operator.client(client).clock(clock).build().start(), transport)
    }

    /// Starts a program as a separate process, and restarts it whenever it is killed.
    ///
    /// It is deployed with its own manifests: definitions, account and rights are printed by its
    /// command `manifests`. From now on, time is real.
    ///
    /// # Panics
    /// Panics if the program cannot be run, or if the server rejects its manifests.
    pub async fn launch(&self, program: Program) -> RunningProgram {
        self.in_real_time();
        let account = self.deploy(&program).await;
        let mut user = User::service_account(NAMESPACE, &account);
        if self.0.rights == Rights::All {
            user.groups.push("system:masters".into());
        }
        let disturbances = self.0.disturbances.clone();
        let running = RunningProgram::start(program, self.server(), user, disturbances).await;
        self.0.programs.lock().push(running.life());
        running
    }

    /// Applies the manifests of a program; returns the name of its account.
    async fn deploy(&self, program: &Program) -> String {
        let mut account = String::new();
        for document in program.manifests().await {
            if document["kind"] == "ServiceAccount" {
                account = document["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            }
            self.apply(&document).await.expect("the server accepts the program's manifests");
        }
        account
    }

    /// Installs or updates a custom resource definition.
    ///
    /// # Errors
    /// Fails if the server rejects it.
    pub async fn define(&self, definition: &Value) -> Result<(), WorldError> {
        apply_definition(&self.client(), definition).await
    }

    /// Resolves when there is nothing to do now: no handler, no controller, no request.
    ///
    /// Work scheduled for later, such as a retry, does not count. Under torture it resolves when
    /// nothing has changed for some minutes, since recovery from crashes and losses takes time.
    pub async fn settled(&self) {
        if self.0.disturbances.is_some() && self.0.programs.lock().is_empty() {
            return self.calmed().await;
        }
        // Paused time advances only when every task waits for it; so when this sleep ends,
        // everything that could run without waiting has run. The second one is for work that the
        // first one woke up.
        for _ in 0..2 {
            tokio::time::sleep(A_MOMENT).await;
            self.server().settle().await;
        }
    }

    /// Resolves when no object has changed for some minutes of virtual time.
    pub(crate) async fn calmed(&self) {
        let calm = if self.is_real() { CALM_IN_REAL_TIME } else { CALM };
        let deadline = tokio::time::Instant::now() + CALM_PATIENCE;
        let mut since = tokio::time::Instant::now();
        let mut version = self.server().resource_version();
        while tokio::time::Instant::now() < deadline {
            tokio::time::sleep(calm / 6).await;
            self.server().settle().await;
            let newest = self.server().resource_version();
            if newest != version {
                (version, since) = (newest, tokio::time::Instant::now());
            } else if since.elapsed() >= calm {
                return;
            }
        }
    }

    /// Advances virtual time, with everything that happens meanwhile.
    pub async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
        self.settled().await;
    }

    /// Switches to real time, for tests with sockets or other processes.
    ///
    /// The world no longer settles by itself: wait with [`World::until`].
    pub fn in_real_time(&self) {
        if !self.0.is_real.swap(true, Ordering::Relaxed) {
            tokio::time::resume();
        }
    }

    fn is_real(&self) -> bool {
        self.0.is_real.load(Ordering::Relaxed)
    }

    /// How long to wait for conditions.
    pub(crate) fn patience(&self) -> Duration {
        match self.0.disturbances {
            _ if self.is_real() => PATIENCE_IN_REAL_TIME,
            Some(_) => PATIENCE_UNDER_TORTURE,
            None => PATIENCE,
        }
    }

    /// Makes matching requests fail, wait or misbehave in other ways; see [`crate::fault`].
    pub fn fault(&self, fault: Fault) {
        self.server().add_fault(fault);
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.server().clear_faults();
    }

    /// The requests of operators about objects, since the start or the last
    /// [`World::forget_requests`].
    #[must_use]
    pub fn requests(&self) -> Requests {
        match self.0.prepared_server.get() {
            Some(prepared_server) => Requests::of_operators(&prepared_server.server),
            None => Requests::none(),
        }
    }

    /// Discards the requests so far.
    pub fn forget_requests(&self) {
        self.server().clear_requests();
    }

    /// The requests of operators that were rejected because of missing rights.
    #[must_use]
    pub fn forbidden(&self) -> Requests {
        self.requests().answered(403)
    }

    /// The events posted so far, in posting order.
    ///
    /// Operators post at a limited rate: let some time pass before calling this.
    ///
    /// # Errors
    /// Fails if the server cannot be reached.
    pub async fn events(&self) -> Result<Vec<PostedEvent>, WorldError> {
        Ok(PostedEvent::of_all(self.objects("events.v1").in_cluster().list().await?))
    }

    /// The state of everything that did not exist at the beginning.
    ///
    /// # Errors
    /// Fails if the server cannot be reached.
    pub async fn snapshot(&self) -> Result<Snapshot, WorldError> {
        Snapshot::take(&self.client(), self.resources().await?).await
    }

    /// The log of this world: lines of the engine and of handlers.
    #[must_use]
    pub fn logs(&self) -> Logs {
        self.0.logs.clone()
    }

    /// Stops everything that [`World::operate`] has started.
    pub(crate) async fn stop_operators(&self) {
        let operators = std::mem::take(&mut *self.0.operators.lock());
        for operator in operators {
            operator.stop().await;
        }
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
