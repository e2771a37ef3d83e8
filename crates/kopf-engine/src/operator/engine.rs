//! The public API of the engine: built from handlers, run until it is asked to stop.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use kopf_client::{Cluster, Login, LoginError, default_login};
use kopf_core::handler::{Handler, HandlerId};
use kopf_core::index::Index;
use kopf_core::invoke::{Extensions, Indexes, OperatorContext};
use kopf_core::lifecycle::Lifecycle;
use kopf_core::occasion::Activity;
use kopf_core::registry::Registry;
use kopf_core::settings::{LeadershipMode, Settings};
use kopf_core::shards::Ranges;
use kopf_model::namespace::NamespacePattern;
use parking_lot::RwLock;
use tokio::sync::{oneshot, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::admission::{Admission, AdmissionEndpoint, AdmissionError, ReviewGate, Serving};
use crate::attempt::activities::{self, ActivityError, HandlerLogin};
use crate::children::rehearsal::Rehearsal;
use crate::clock::Clock;
use crate::cluster_view::{ClusterSnapshot, Scope};
use crate::context::background_tasks::BackgroundTasks;
use crate::context::memos::Memos;
use crate::context::runtime::Runtime;
use crate::context::shared::Shared;
use crate::context::tuning::{Marks, Tuning, policy};
use crate::leadership::{
    self, Candidate, Keeper, Leadership, LeadershipError, Leases, Replica, Sharer, Tenure,
};
use crate::operator::late_handlers::{LateHandlers, add_index};
use crate::operator::leader_tasks::LeaderTasks;
use crate::operator::peering;
use crate::pool::Pool;
use crate::reactor::{Mailbox, Reactor};
use crate::reporting::journal::Journal;
use crate::reporting::log_sink::LogSink;
use crate::reporting::poster::Recorder;
use crate::reporting::status::{Board, StatusHandle};
use crate::serving::ports::Ports;
use crate::serving::probes::{Probes, ProbesEndpoint, ProbesError};
use crate::write::loops::Loops;

/// How long to post waiting events at shutdown.
const POSTING_GRACE: std::time::Duration = std::time::Duration::from_secs(1);

/// How long removing the peering record may take at shutdown.
const LEAVING_GRACE: std::time::Duration = std::time::Duration::from_secs(5);

/// An operator that is ready to run.
pub struct Engine {
    registry: Registry,
    cluster: Cluster,
    scope: Scope,
    lifecycle: Lifecycle,
    poster: crate::reporting::poster::Poster,
    runtime: Arc<Runtime>,
    tenure: Arc<Tenure>,
    stores: HashMap<HandlerId, Arc<Index>>,
    ready: watch::Sender<bool>,
    identity: Option<String>,
    endpoints: Endpoints,
    late_handlers: Option<LateHandlers>,
}

/// The operator's endpoints.
#[derive(Default)]
struct Endpoints {
    admission: Option<AdmissionEndpoint>,
    gate: Option<ReviewGate>,
    probes: Option<ProbesEndpoint>,
}

/// Collects the inputs of an engine.
#[must_use]
pub struct EngineBuilder {
    registry: Registry,
    settings: Settings,
    cluster: Source,
    namespaces: Vec<NamespacePattern>,
    clock: Clock,
    lifecycle: Lifecycle,
    memo: Extensions,
    state: Extensions,
    identity: Option<String>,
    endpoints: Endpoints,
    outputs: Outputs,
    late_handlers: Option<LateHandlers>,
}

/// Where the engine reports what it does, besides the cluster.
#[derive(Default)]
struct Outputs {
    rehearsal: Option<Rehearsal>,
    log_sink: Option<Arc<dyn LogSink>>,
}

enum Source {
    Login(Arc<dyn Login>),
    Client(kube::Client),
    Default,
}

/// Why an engine could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A startup or cleanup handler failed permanently.
    #[error("the operator could not {phase}")]
    Activity {
        /// `start` or `clean up`.
        phase: &'static str,
        /// The handler and its error.
        source: ActivityError,
    },
    /// Startup handlers have registered invalid handlers.
    #[error("handlers that were registered at startup cannot be used: {0}")]
    LateHandlers(String),
    /// The prefix of our annotations is empty.
    #[error("annotation prefixes in settings.persistence must not be empty")]
    EmptyPrefix,
    /// The probes cannot be served.
    #[error("could not start the probe server")]
    Probes(#[from] ProbesError),
    /// Reviews cannot be served.
    #[error("could not start the webhook server")]
    Admission(#[from] AdmissionError),
    /// The shutdown took too long and was aborted.
    #[error("the operator did not stop within {patience:?}")]
    Overdue {
        /// The limit from `settings.process.ultimate_exiting_timeout`.
        patience: std::time::Duration,
    },
    /// The replicas cannot elect a leader.
    #[error("the operator could not take part in the election of a leader")]
    Leadership(#[from] LeadershipError),
    /// There are no credentials for the cluster.
    #[error("the operator could not log in to the cluster")]
    Login(#[from] LoginError),
}

/// What an engine has while it is connected to the cluster.
struct Connected {
    keeper: Option<Keeper>,
    marks: Marks,
    tuning: Tuning,
    probes: Option<AbortOnDropHandle<()>>,
    snapshots: watch::Sender<ClusterSnapshot>,
    admission: Option<Serving>,
}

impl Engine {
    /// Creates a builder for an engine with these handlers.
    pub fn builder(registry: Registry) -> EngineBuilder {
        EngineBuilder {
            registry,
            settings: Settings::default(),
            cluster: Source::Default,
            namespaces: Vec::new(),
            clock: Clock::default(),
            lifecycle: Lifecycle::default(),
            memo: Extensions::default(),
            state: Extensions::default(),
            identity: None,
            endpoints: Endpoints::default(),
            outputs: Outputs::default(),
            late_handlers: None,
        }
    }

    /// The status of the engine, also while it runs.
    #[must_use]
    pub fn status(&self) -> StatusHandle {
        StatusHandle { board: Arc::clone(&self.runtime.board), cluster: self.cluster.clone() }
    }

    /// The context that all handlers share.
    #[must_use]
    pub fn context(&self) -> Arc<OperatorContext> {
        Arc::clone(&self.runtime.context)
    }

    /// The indexes, for front ends that read them outside calls.
    #[must_use]
    pub fn indexes(&self) -> Arc<Indexes> {
        Arc::clone(&self.runtime.indexes)
    }

    /// Becomes true when the startup handlers are done and the cluster is connected.
    #[must_use]
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Adds the handlers that startup handlers have registered.
    fn add_late_handlers(&mut self) -> Result<(), EngineError> {
        let Some(late_handlers) = self.late_handlers.take() else { return Ok(()) };
        for handler in late_handlers().map_err(EngineError::LateHandlers)? {
            let handler = self.registry.add(handler);
            add_index(&handler, &self.runtime.indexes, &mut self.stores);
        }
        if self.registry.admission().next().is_some() {
            self.runtime.memos.share_with_reviews();
        }
        Ok(())
    }

    /// Runs until `shutdown` resolves, then shuts down gracefully.
    ///
    /// If the startup handlers have succeeded, the cleanup handlers run, even if the cluster was
    /// never reached.
    ///
    /// # Errors
    /// Fails if a startup or cleanup handler fails permanently, or if there are no credentials. No
    /// later failure of the cluster ends it.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), EngineError> {
        let (stop, stopped) = oneshot::channel::<()>();
        let mut running = self.run_until_dropped(stopped);
        tokio::select! {
            biased;
            () = shutdown => drop(stop),
            ended = &mut running => return ended,
        }
        running.await
    }

    /// The same without type parameters, and on the heap: futures with type parameters, and all
    /// that they await, would be compiled again in every crate that awaits them.
    #[inline(never)]
    pub(super) fn run_until_dropped(
        self,
        stopped: oneshot::Receiver<()>,
    ) -> BoxFuture<'static, Result<(), EngineError>> {
        Box::pin(self.run_until(async move {
            // Only dropped, never used.
            let _ = stopped.await;
        }))
    }

    async fn run_until(mut self, shutdown: impl Future<Output = ()>) -> Result<(), EngineError> {
        tokio::pin!(shutdown);
        tokio::select! {
            started = self.start_up() => started?,
            () = &mut shutdown => return Ok(()),
        }
        // From here on, the startup is always followed by the cleanup.
        let connecting = match self.add_late_handlers() {
            Ok(()) => self.connect(&mut shutdown).await,
            Err(error) => Err(error),
        };
        let Ok(Some(connected)) = connecting else {
            let cleaned_up = self.give_up().await;
            return connecting.map(drop).and(cleaned_up);
        };
        let Connected { keeper, marks, tuning, probes, snapshots, admission } = connected;
        let (close_poster, closing) = oneshot::channel();
        let posting = self.poster.run(Arc::clone(&self.runtime.context), closing);
        let poster = AbortOnDropHandle::new(tokio::spawn(posting));
        let (mailbox, notices) = Mailbox::new();
        let shared = Arc::new(Shared {
            cluster: self.cluster,
            registry: self.registry.clone(),
            runtime: Arc::clone(&self.runtime),
            marks,
            stores: self.stores,
            lifecycle: self.lifecycle,
            tenure: self.tenure,
            children: Arc::default(),
            loops: Loops::new(),
            snapshots,
            background: BackgroundTasks::default(),
            notices,
        });
        // However this ends, even by being dropped: no task outlives it.
        let _ended = shared.background.ended.clone().drop_guard();
        let timers = Arc::clone(&shared.background.timers);
        let timers = AbortOnDropHandle::new(tokio::spawn(timers.run()));
        self.ready.send_replace(true);
        let election = LeaderTasks::start(keeper, &shared);
        let identity =
            self.identity.unwrap_or_else(|| peering::identity(shared.runtime.clock.now()));
        let peering = peering::run(Arc::clone(&shared), self.scope.clone(), identity.clone());
        let peering = AbortOnDropHandle::new(tokio::spawn(peering));
        let is_paused = peering::begins_paused(&self.runtime.context.settings.read().peering);
        let reactor = Reactor::new(Arc::clone(&shared), self.scope.clone(), mailbox, tuning);
        let reactor = reactor.starting_paused(is_paused).run(&mut shutdown).await;
        let patience = self.runtime.context.settings.read().process.ultimate_exiting_timeout;
        let ending = async {
            reactor.close().await;
            drop((probes, timers));
            if let Some(admission) = admission {
                admission.stop().await;
            }
            finish_posting(poster, close_poster).await;
            let cleaned_up = clean_up(&self.registry, &self.runtime).await;
            // The cleanup is work too: other replicas start after it. Without the resource the task
            // ends by itself, and there is no record to remove.
            if !peering.is_finished() {
                peering.abort();
                let leaving = peering::leave(&shared, &self.scope, &identity);
                let _ = tokio::time::timeout(LEAVING_GRACE, leaving).await;
            }
            // No work is left: another replica may start.
            election.leave().await;
            cleaned_up
        };
        within(patience, ending).await
    }

    async fn start_up(&self) -> Result<(), EngineError> {
        let handlers = self.registry.activities(Activity::Startup);
        let started = activities::run(&self.runtime, Activity::Startup, &handlers).await;
        started.map_err(|source| EngineError::Activity { phase: "start", source }).map(drop)
    }

    /// Applies the settings of startup handlers, and connects to the cluster; `None` if it must
    /// stop.
    async fn connect(
        &self,
        shutdown: impl Future<Output = ()>,
    ) -> Result<Option<Connected>, EngineError> {
        let settings = self.runtime.context.settings.read().clone();
        let marks = Marks::of(&settings).map_err(|_| EngineError::EmptyPrefix)?;
        let tuning = Tuning::of(&settings);
        self.runtime.pool.resize(settings.execution.max_workers);
        self.poster.set_queue_max(settings.posting.queue_max);
        leadership::prepare(&settings.leadership, &self.tenure)?;
        self.runtime.context.state.insert(Arc::new(Leadership::of(&self.tenure)));
        let (policy, ports) = (policy(&settings), Ports::new(settings.serving.clone()));
        let probes = self.serve_probes(Arc::clone(&ports)).await?;
        self.cluster.set_policy(policy);
        tokio::pin!(shutdown);
        tokio::select! {
            connected = self.cluster.connect() => connected?,
            () = &mut shutdown => return Ok(None),
        };
        self.runtime.context.state.insert(Arc::new(self.cluster.client().await?));
        let keeper = self.keeper(&settings).await?;
        let snapshots = watch::Sender::default();
        let admission = match self.admission() {
            None => None,
            Some(admission) if self.endpoints.gate.is_some() => {
                let gate = self.endpoints.gate.as_ref();
                gate.map(|gate| admission.start_behind(gate, snapshots.subscribe()))
            }
            Some(admission) => {
                let endpoint = self.endpoints.admission.clone();
                let snapshots = snapshots.subscribe();
                match admission.start(endpoint, ports, snapshots, shutdown).await? {
                    None => return Ok(None),
                    serving => serving,
                }
            }
        };
        Ok(Some(Connected { keeper, marks, tuning, probes, snapshots, admission }))
    }

    /// This replica among others, if there may be any.
    async fn keeper(&self, settings: &Settings) -> Result<Option<Keeper>, EngineError> {
        let (settings, is_announced) = (&settings.leadership, settings.posting.enabled);
        if settings.mode == LeadershipMode::Alone {
            return Ok(None);
        }
        let default_namespace = self.cluster.connect().await?;
        let namespace = leadership::namespace_of(settings, &default_namespace);
        let name = leadership::name_of(settings)?;
        let times = settings.times().map_err(LeadershipError::from)?;
        // Leaves time for another attempt if one hangs.
        let leases = Leases::new(self.cluster.unfenced(), &namespace, times.renew_deadline / 3)
            .announced(is_announced);
        let identity = self.identity.clone().unwrap_or_else(leadership::identity);
        let (tenure, board) = (Arc::clone(&self.tenure), Arc::clone(&self.runtime.board));
        let replica = Replica::new(leases, tenure, board, self.runtime.clock.clone());
        Ok(Some(match settings.mode {
            LeadershipMode::Shards => {
                let ranges = Ranges::new(settings.shard_field, settings.ranges);
                let identity = leadership::as_name(&identity);
                let sharer = Sharer::new(replica, name, &identity, times, ranges);
                Keeper::Sharer(Box::new(sharer))
            }
            _ => Keeper::Candidate(Box::new(Candidate::new(replica, name, &identity, times))),
        }))
    }

    /// Shuts down before the cluster is connected.
    async fn give_up(&self) -> Result<(), EngineError> {
        let patience = self.runtime.context.settings.read().process.ultimate_exiting_timeout;
        within(patience, clean_up(&self.registry, &self.runtime)).await
    }

    fn admission(&self) -> Option<Admission> {
        Admission::new(&self.registry, self.cluster.clone(), Arc::clone(&self.runtime))
    }

    async fn serve_probes(
        &self,
        ports: Arc<Ports>,
    ) -> Result<Option<AbortOnDropHandle<()>>, ProbesError> {
        let Some(endpoint) = self.endpoints.probes.clone() else { return Ok(None) };
        let probes = Probes {
            endpoint,
            status: self.status(),
            cluster: self.cluster.unfenced(),
            runtime: Arc::clone(&self.runtime),
            handlers: self.registry.activities(Activity::Probe),
            registered: self.registry.iter().cloned().collect(),
            kept: tokio::sync::Mutex::default(),
        };
        Ok(Some(probes.start(ports).await?))
    }
}

impl EngineBuilder {
    /// The definitions of all resources that are known at compile time, each once.
    #[must_use]
    pub fn definitions(&self) -> Vec<serde_json::Value> {
        kopf_core::definition::typed(self.handlers())
    }

    /// The definitions of resources given only by name, if they can be guessed.
    #[must_use]
    pub fn implied_definitions(&self) -> Vec<serde_json::Value> {
        kopf_core::definition::guessed(self.handlers())
    }

    /// The handlers, in registration order.
    pub fn handlers(&self) -> impl Iterator<Item = &kopf_core::Handler> {
        self.registry.iter().map(|handler| &**handler)
    }

    /// The minimal rights that the engine needs in the cluster for these handlers.
    #[must_use]
    pub fn rights(&self) -> Vec<kopf_core::rights::Right> {
        let serves = match self.namespaces.as_slice() {
            [] => kopf_core::rights::Serves::Cluster,
            _ => kopf_core::rights::Serves::Namespaces,
        };
        kopf_core::rights::of(self.handlers(), &self.settings, serves)
    }

    /// Sets the settings.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets a client to use instead of logging in, such as one for an in-process server.
    pub fn client(mut self, client: kube::Client) -> Self {
        self.cluster = Source::Client(client);
        self
    }

    /// Sets how to log in, unless there are login handlers.
    pub fn login(mut self, login: Arc<dyn Login>) -> Self {
        self.cluster = Source::Login(login);
        self
    }

    /// Serves only these namespaces, given as names or patterns; if empty, the whole cluster.
    pub fn namespaces<P: Into<NamespacePattern>>(
        mut self,
        patterns: impl IntoIterator<Item = P>,
    ) -> Self {
        self.namespaces.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Serves the whole cluster.
    pub fn clusterwide(mut self) -> Self {
        self.namespaces.clear();
        self
    }

    /// Sets where to serve reviews; required if there are admission or conversion handlers.
    pub fn admission(mut self, endpoint: AdmissionEndpoint) -> Self {
        self.endpoints.admission = Some(endpoint);
        self
    }

    /// Receives reviews through this gate, from a server of the front end.
    pub fn review_gate(mut self, gate: ReviewGate) -> Self {
        self.endpoints.gate = Some(gate);
        self
    }

    /// Sets the name among peering operators, instead of a generated one.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Reports what would be done about children instead of doing it.
    ///
    /// Only for handlers of desired children and indexes: others would be called as usual.
    pub fn rehearsal(mut self, rehearsal: Rehearsal) -> Self {
        self.outputs.rehearsal = Some(rehearsal);
        self
    }

    /// The lines about objects and activities of this operator go there, besides `tracing`.
    pub fn log_sink(mut self, sink: Arc<dyn LogSink>) -> Self {
        self.outputs.log_sink = Some(sink);
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets how to choose among the due handlers.
    pub fn lifecycle(mut self, lifecycle: Lifecycle) -> Self {
        self.lifecycle = lifecycle;
        self
    }

    /// Sets the initial values of every object's memo.
    pub fn memo(mut self, memo: Extensions) -> Self {
        self.memo = memo;
        self
    }

    /// Sets the application's state.
    pub fn state(mut self, state: Extensions) -> Self {
        self.state = state;
        self
    }

    /// Adds the handlers that startup handlers register: calls the function once, after the
    /// startup.
    ///
    /// Login handlers among them are not called, because the login is chosen before.
    pub fn late_handlers(
        mut self,
        late_handlers: impl FnOnce() -> Result<Vec<Handler>, String> + Send + Sync + 'static,
    ) -> Self {
        self.late_handlers = Some(Box::new(late_handlers));
        self
    }

    /// Sets where to serve liveness, readiness and metrics.
    pub fn probes(mut self, endpoint: ProbesEndpoint) -> Self {
        self.endpoints.probes = Some(endpoint);
        self
    }

    /// Builds the engine.
    #[must_use]
    pub fn build(self) -> Engine {
        let tenure = Tenure::new();
        let pool = Pool::new(self.settings.execution.max_workers, Arc::clone(&tenure));
        let runtime_cell: Arc<OnceLock<Arc<Runtime>>> = Arc::default();
        let login_handlers = self.registry.activities(Activity::Authentication);
        let policy = policy(&self.settings);
        let cluster = match self.cluster {
            Source::Client(client) => Cluster::with_client(client, policy),
            _ if !login_handlers.is_empty() => {
                let runtime = Arc::clone(&runtime_cell);
                let login = HandlerLogin { handlers: login_handlers, runtime };
                Cluster::new(Arc::new(login), policy)
            }
            Source::Login(login) => Cluster::new(login, policy),
            Source::Default => Cluster::new(default_login(), policy),
        };
        let cluster = cluster.fenced_by(tenure.fence());
        let queue_max = self.settings.posting.queue_max;
        let (recorder, poster) = Recorder::new(cluster.clone(), self.clock.clone(), queue_max);
        let context = Arc::new(OperatorContext {
            settings: RwLock::new(self.settings),
            state: self.state,
            recorder,
        });
        let indexes = Arc::new(Indexes::default());
        let mut stores = HashMap::new();
        for handler in self.registry.iter() {
            add_index(handler, &indexes, &mut stores);
        }
        let has_admission = self.registry.admission().next().is_some();
        let runtime = Arc::new(Runtime {
            context,
            memos: Arc::new(Memos::new(self.memo, has_admission)),
            indexes,
            clock: self.clock,
            pool,
            board: Board::new(),
            journal: Arc::new(Journal::new(self.endpoints.probes.is_some())),
            rehearsal: self.outputs.rehearsal,
            log_sink: self.outputs.log_sink,
        });
        // Set once here; the cluster's login reads it at the first request.
        let _ = runtime_cell.set(Arc::clone(&runtime));
        let scope = match self.namespaces {
            none if none.is_empty() => Scope::Cluster,
            some => Scope::Namespaces(some),
        };
        let (ready, _) = watch::channel(false);
        Engine {
            registry: self.registry,
            cluster,
            scope,
            lifecycle: self.lifecycle,
            poster,
            runtime,
            tenure,
            stores,
            ready,
            identity: self.identity,
            endpoints: self.endpoints,
            late_handlers: self.late_handlers,
        }
    }
}

async fn clean_up(registry: &Registry, runtime: &Runtime) -> Result<(), EngineError> {
    let handlers = registry.activities(Activity::Cleanup);
    let cleaned_up = activities::run(runtime, Activity::Cleanup, &handlers).await;
    cleaned_up.map_err(|source| EngineError::Activity { phase: "clean up", source }).map(drop)
}

/// Aborts what takes longer than this; `None` waits without a limit.
async fn within<T>(
    patience: Option<std::time::Duration>,
    ending: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, EngineError> {
    let Some(patience) = patience else { return ending.await };
    let ended = tokio::time::timeout(patience, ending).await;
    ended.unwrap_or(Err(EngineError::Overdue { patience }))
}

/// Lets the poster send waiting events, but not for long.
async fn finish_posting(poster: AbortOnDropHandle<()>, close: oneshot::Sender<()>) {
    // It may have ended already; then there is nothing to close.
    let _ = close.send(());
    let _ = tokio::time::timeout(POSTING_GRACE, poster).await;
}
