//! One test's own cluster: forked from a prepared one, with a clock that waits for nobody.
//!
//! Owns the server, the clients and what is known of the operators in it. Objects are read and
//! written in `objects` and `untyped`; what operators did is told by `requests`, `posted`, `logs`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kopf_apiserver::{Fault, Server, User};
use kopf_core::rights::Right;
use kopf_engine::{Clock, EngineBuilder, Running};
use kube::Client;
use parking_lot::Mutex;
use serde_json::Value;

use crate::clock::VirtualClock;
use crate::door::Door;
use crate::ground::{Definitions, Ground, apply_definition, runtime};
use crate::logs::Logs;
use crate::operated::Operated;
use crate::privilege;
use crate::program::{Life, Program};
use crate::requests::Requests;
use crate::reviews;
use crate::torture::Torment;

/// The namespace that objects are in unless told otherwise.
pub(crate) const NAMESPACE: &str = "default";
/// Who operators are.
pub(crate) const OPERATOR: &str = "operator";
/// How much real time `until` gives a condition when there are other processes.
const PATIENCE_IN_REAL_TIME: Duration = Duration::from_secs(60);
/// How much virtual time `until` gives a condition.
const PATIENCE: Duration = Duration::from_secs(600);
/// The same while the operator is tortured.
const PATIENCE_UNDER_TORTURE: Duration = Duration::from_secs(7200);
/// Less than any delay that matters; with paused time, it passes when nothing else can run.
const A_MOMENT: Duration = Duration::from_millis(1);
/// Tortured operators are done when nothing has changed for this long: longer than default retries.
const CALM: Duration = Duration::from_secs(180);
/// The same in real time, where nobody can wait so long.
const CALM_IN_REAL_TIME: Duration = Duration::from_secs(6);
/// How long a world may take to become calm; with timers that write, it never does.
const CALM_PATIENCE: Duration = Duration::from_secs(1800);

/// What went wrong in a world.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// The server refused.
    #[error("the server refused: {}", told(.0))]
    Refused(#[from] kube::Error),
    /// A condition did not come true.
    #[error("{what} did not come true within {patience:?} of virtual time; last seen: {last}")]
    Never {
        /// The condition.
        what: String,
        /// How long it was waited for.
        patience: Duration,
        /// What was seen instead.
        last: String,
    },
    /// The server has no such resource.
    #[error("the server has no resource {0}")]
    Unknown(String),
}

/// The text itself: this is what `unwrap` prints, and what a test returns.
impl std::fmt::Debug for WorldError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, formatter)
    }
}

/// What the server said, with the code and the reason that tests can compare.
fn told(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => {
            format!("{} ({} {})", status.message.trim_end(), status.code, status.reason)
        }
        other => chain(other),
    }
}

/// An error with its causes, without those that it repeats itself.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

/// One test's own cluster; clones are the same cluster.
#[derive(Clone)]
pub struct World(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    // Made when first needed: an operator that is started before anything else has happened finds
    // its definitions there.
    ground: OnceLock<Ground>,
    pub(crate) logs: Logs,
    pub(crate) rights: Rights,
    pub(crate) torment: Option<Arc<Torment>>,
    // Written when an operator starts, read by whoever proves something about its rights.
    pub(crate) granted: Mutex<Vec<Right>>,
    // Everything that runs here, to be stopped before the end state is looked at.
    pub(crate) crew: Mutex<Vec<Operated>>,
    // The same for programs, and what is run in place of operators, if anything is.
    pub(crate) launched: Mutex<Vec<Arc<Life>>>,
    pub(crate) program: Option<Program>,
    // Set by the test, read by whoever waits.
    is_real: AtomicBool,
}

/// What operators may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// Everything.
    All,
    /// Exactly what is derived from their handlers.
    Own,
    /// The same without one verb: the number of the right, and of the verb in it.
    OwnWithout(usize, usize),
}

/// Runs a test in a world of its own, with paused time.
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
/// Panics when the runtime cannot be built, and when the test panics.
pub fn run<T, F: Future<Output = T>>(test: impl FnOnce(World) -> F) -> T {
    in_world(Rights::All, None, async |world| test(world).await)
}

/// Runs a test in a world with these properties; shows the log of the operator when it panics.
pub(crate) fn in_world<T>(
    rights: Rights,
    torment: Option<Arc<Torment>>,
    test: impl AsyncFnOnce(World) -> T,
) -> T {
    in_world_of(None, rights, torment, test)
}

/// The same, with a program in place of operators.
pub(crate) fn in_world_of<T>(
    program: Option<Program>,
    rights: Rights,
    torment: Option<Arc<Torment>>,
    test: impl AsyncFnOnce(World) -> T,
) -> T {
    let logs = Logs::default();
    let _capturing = logs.capture();
    let _showing = logs.shown_on_panic();
    runtime(true)
        .block_on(async { test(World::with(rights, torment, program, logs.clone())).await })
}

impl World {
    /// A new world; needs a tokio runtime, best one with paused time (see [`run`]).
    #[must_use]
    pub fn new() -> Self {
        Self::with(Rights::All, None, None, Logs::default())
    }

    fn with(
        rights: Rights,
        torment: Option<Arc<Torment>>,
        program: Option<Program>,
        logs: Logs,
    ) -> Self {
        let (granted, crew) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Inner {
            ground: OnceLock::new(),
            logs,
            rights,
            torment,
            granted,
            crew,
            launched: Mutex::default(),
            program,
            is_real: AtomicBool::new(false),
        }))
    }

    fn ground(&self) -> &Ground {
        self.0.ground.get_or_init(|| Ground::plain(self.0.rights))
    }

    /// The API server: the lives of Pods, controllers, users, webhooks.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.ground().server
    }

    /// A client with all rights, whose requests are not counted as the operator's.
    #[must_use]
    pub fn client(&self) -> Client {
        self.ground().client.clone()
    }

    /// Starts an operator in this world, with its definitions, and waits until it watches.
    ///
    /// Takes an engine's builder, or anything that becomes one, such as `kopf::Operator`. It runs
    /// until the returned handle is dropped.
    ///
    /// # Panics
    /// Panics when the server refuses a definition of the operator, and under torture, which
    /// needs [`World::operate`] to start the operator again after a crash.
    pub async fn start(&self, operator: impl Into<EngineBuilder>) -> Running {
        let is_tortured = self.0.torment.is_some();
        assert!(
            !is_tortured,
            "under torture use `world.operate(operator)`, which can start it again"
        );
        let operator = operator.into();
        self.prepare_for(&operator).await;
        let (running, door) = self.hire(operator);
        running.settled().await;
        // Whoever takes longer is waited for by the test itself.
        let _ = tokio::time::timeout(self.patience(), door.is_asked()).await;
        running
    }

    /// Runs an operator in this world until its end, and again after each crash.
    ///
    /// Takes the function that makes the operator. Waits until it watches. In the rounds of
    /// [`Program::killed`](crate::Program::killed), the program is launched in its place.
    ///
    /// # Panics
    /// Panics when the server refuses a definition of the operator.
    pub async fn operate<O: Into<EngineBuilder> + 'static>(
        &self,
        operator: impl Fn() -> O + Send + 'static,
    ) -> Operated {
        if let Some(program) = self.0.program.clone() {
            let operator = operator().into();
            let installed = Definitions::implied_by(&operator).install(&self.client()).await;
            installed.expect("the server accepts definitions that allow everything");
            return Operated::of(self.launch(program).await);
        }
        self.prepare_for(&operator().into()).await;
        let operated = Operated::start(self.clone(), operator).await;
        self.0.crew.lock().push(operated.clone());
        operated
    }

    /// Defines what the operator is for, and grants what it may do.
    async fn prepare_for(&self, operator: &EngineBuilder) {
        let definitions = Definitions::of(operator);
        if !self.stands_on(&definitions) {
            let installed = definitions.install(&self.client()).await;
            installed.expect("the server accepts derived definitions");
        }
        let rights = operator.rights();
        privilege::grant(self, &rights).await;
        *self.0.granted.lock() = rights;
    }

    /// Whether everything is defined, since nothing has happened here yet and a prepared server
    /// could be taken.
    fn stands_on(&self, definitions: &Definitions) -> bool {
        let is_blank = self.0.ground.get().is_none();
        let ground = is_blank.then(|| Ground::with(self.0.rights, definitions)).flatten();
        ground.is_some_and(|ground| self.0.ground.set(ground).is_ok())
    }

    /// Starts an operator behind a door of its own.
    pub(crate) fn hire(&self, operator: EngineBuilder) -> (Running, Door) {
        let mut user = User::service_account(NAMESPACE, OPERATOR);
        if self.0.rights == Rights::All {
            user.groups.push("system:masters".into());
        }
        let door = Door::new(self.server().service_as(user), self.0.torment.clone());
        let clock = Clock::following_tokio(VirtualClock.now());
        let (operator, door) = reviews::connect(self.server(), operator, door);
        let client = Client::new(door.clone(), NAMESPACE);
        (operator.client(client).clock(clock).build().start(), door)
    }

    /// Installs a custom resource definition; one that is there already is brought up to date.
    ///
    /// # Errors
    /// Fails when the server refuses it.
    pub async fn define(&self, definition: &Value) -> Result<(), WorldError> {
        apply_definition(&self.client(), definition).await
    }

    /// Resolves when nobody has anything to do now: no handler, no controller, no request.
    ///
    /// What waits for a later moment, such as a retry, does not count. Under torture it resolves
    /// when nothing has changed for some minutes, since crashes and losses take time to mend.
    pub async fn settled(&self) {
        if self.0.torment.is_some() && self.0.launched.lock().is_empty() {
            return self.calmed().await;
        }
        // Paused time moves only when every task waits for it; so once this sleep is over, all
        // that could be done without waiting has been done. The second one is for work that the
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

    /// Lets virtual time pass, with everything that happens in it.
    pub async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
        self.settled().await;
    }

    /// Lets real time pass from now on, for what has sockets or runs in other processes.
    ///
    /// Then nothing is settled by itself: wait with [`World::until`].
    pub fn in_real_time(&self) {
        if !self.0.is_real.swap(true, Ordering::Relaxed) {
            tokio::time::resume();
        }
    }

    fn is_real(&self) -> bool {
        self.0.is_real.load(Ordering::Relaxed)
    }

    /// How long conditions are waited for.
    pub(crate) fn patience(&self) -> Duration {
        match self.0.torment {
            _ if self.is_real() => PATIENCE_IN_REAL_TIME,
            Some(_) => PATIENCE_UNDER_TORTURE,
            None => PATIENCE,
        }
    }

    /// Makes matching requests fail, wait or go wrong in other ways; see [`crate::fault`].
    pub fn fault(&self, fault: Fault) {
        self.server().add_fault(fault);
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.server().clear_faults();
    }

    /// The requests of operators about objects, so far or since they were forgotten.
    #[must_use]
    pub fn requests(&self) -> Requests {
        match self.0.ground.get() {
            Some(ground) => Requests::of_operators(&ground.server),
            None => Requests::none(),
        }
    }

    /// Forgets the requests so far.
    pub fn forget_requests(&self) {
        self.server().clear_requests();
    }

    /// The requests of operators that were refused for lack of rights.
    #[must_use]
    pub fn forbidden(&self) -> Requests {
        self.requests().answered(403)
    }

    /// What was logged in this world: by the engine, and by handlers.
    #[must_use]
    pub fn logs(&self) -> Logs {
        self.0.logs.clone()
    }

    /// Stops everything that [`World::operate`] has started.
    pub(crate) async fn dismiss(&self) {
        let crew = std::mem::take(&mut *self.0.crew.lock());
        for operated in crew {
            operated.stop().await;
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
