//! Running operators: as the whole program, or as a part of one.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use kopf_core::Settings;
use kopf_core::settings::LeadershipMode;
use kopf_engine::{
    AdmissionEndpoint, Engine, EngineBuilder, EngineError, InvalidNamespacePattern,
    NamespacePattern, ProbesEndpoint, StatusHandle,
};
use tokio::sync::watch;

use crate::operator::{InvalidOperator, Operator};

/// Where and how an operator runs.
///
/// ```
/// let config = kopf::Config {
///     namespaces: vec!["team-*".into()],
///     probes: Some(kopf::ProbesEndpoint::new(([0, 0, 0, 0], 8080).into(), "/healthz")),
///     ..kopf::Config::default()
/// };
/// ```
#[derive(Clone, Default)]
pub struct Config {
    /// The namespaces: names, patterns such as `team-*,!team-x`, or regular expressions between
    /// slashes such as `/team-[0-9]+/`. Empty means the whole cluster.
    pub namespaces: Vec<String>,
    /// Whether to serve the whole cluster; `namespaces` is then ignored.
    pub all_namespaces: bool,
    /// A client to use instead of logging in, such as one for an in-process server.
    pub client: Option<kube::Client>,
    /// Whether to ignore other operators of the same kind; by default, as in the settings.
    pub standalone: Option<bool>,
    /// The priority among operators of the same kind; by default, as in the settings.
    pub priority: Option<i64>,
    /// The peering object through which operators of the same kind find each other.
    pub peering: Option<String>,
    /// How replicas cooperate: not at all, one leads and the others stand by, or they share the
    /// objects; by default, as in the settings.
    pub leadership: Option<LeadershipMode>,
    /// The name of the Leases of replicas; by default, as in the settings.
    pub lease: Option<String>,
    /// How many ranges the objects are split into; by default, as in the settings.
    pub ranges: Option<u32>,
    /// The file that lets the operator restart without listing its objects; by default, as in the
    /// settings.
    pub snapshot: Option<PathBuf>,
    /// Where webhooks are served; required if there are admission handlers.
    pub webhooks: Option<AdmissionEndpoint>,
    /// Where liveness, readiness and metrics are served.
    pub probes: Option<ProbesEndpoint>,
}

/// Why an operator did not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A requirement of the handlers is not met.
    #[error(transparent)]
    Invalid(#[from] InvalidOperator),
    /// A value of the state could not be created.
    #[error("could not create the operator's state: {message}")]
    State {
        /// What went wrong.
        message: String,
    },
    /// A namespace pattern is malformed.
    #[error("the namespace patterns are invalid")]
    Namespaces(#[from] InvalidNamespacePattern),
    /// The engine could not start, or failed while shutting down.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// An operator that runs as a part of this program.
///
/// Dropping this stops the operator.
#[must_use = "the operator stops when this is dropped"]
pub struct Running {
    stop: Stopper,
    task: tokio::task::JoinHandle<Result<(), EngineError>>,
    ready: watch::Receiver<bool>,
    status: StatusHandle,
}

/// Asks a running operator to stop, from anywhere.
#[derive(Clone)]
pub struct Stopper(Arc<watch::Sender<bool>>);

impl Stopper {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Asks the operator to stop; it shuts down gracefully.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut flag = self.0.subscribe();
        async move {
            // Dropping all stoppers has the same effect as a request to stop.
            let _gone = flag.wait_for(|stopped| *stopped).await;
        }
    }
}

impl Operator {
    /// Runs forever, or until a startup handler fails permanently. To stop it, drop the future.
    ///
    /// # Errors
    /// Fails if the operator is invalid, cannot log in, or a startup handler fails permanently.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), kopf::RunError> {
    /// kopf::Operator::new("demo").run(kopf::Config::default()).await
    /// # }
    /// ```
    pub async fn run(self, config: Config) -> Result<(), RunError> {
        self.run_until(config, std::future::pending()).await
    }

    /// Runs until `shutdown` resolves, then shuts down gracefully.
    ///
    /// # Errors
    /// Fails if the operator is invalid, cannot log in, or a startup or cleanup handler fails
    /// permanently.
    pub async fn run_until(
        self,
        config: Config,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), RunError> {
        Ok(self.engine(config).await?.run(shutdown).await?)
    }

    /// Starts the operator in the background of the current tokio runtime.
    ///
    /// # Errors
    /// Fails if the operator is invalid. [`Running::wait`] returns later failures.
    pub async fn start(self, config: Config) -> Result<Running, RunError> {
        let engine = self.engine(config).await?;
        let stop = Stopper::new();
        let (ready, status) = (engine.ready(), engine.status());
        let task = tokio::spawn(engine.run(stop.stopped()));
        Ok(Running { stop, task, ready, status })
    }

    /// Starts a dry run with only indexes and desired children, and without writes.
    #[cfg(feature = "cli")]
    pub(crate) async fn rehearse(
        mut self,
        config: Config,
        rehearsal: kopf_engine::Rehearsal,
    ) -> Result<kopf_engine::Running, RunError> {
        self.check()?;
        self.make_state().await.map_err(|error| RunError::State { message: error.to_string() })?;
        self.keep(|kind| {
            use kopf_core::HandlerKind::{Cleanup, Desired, Index, Login, Startup};
            matches!(kind, Cleanup | Desired | Index | Login | Startup)
        });
        let leadership = Some(LeadershipMode::Alone);
        let config = Config { standalone: Some(true), leadership, ..config };
        Ok(config.builder(self)?.rehearsal(rehearsal).build().start())
    }

    async fn engine(mut self, config: Config) -> Result<Engine, RunError> {
        self.check()?;
        self.make_state().await.map_err(|error| RunError::State { message: error.to_string() })?;
        Ok(config.builder(self)?.build())
    }
}

/// For tests, which give the operator their own cluster and clock.
///
/// # Panics
/// Panics if the operator is invalid, or has state that has not been created yet.
impl From<Operator> for EngineBuilder {
    fn from(operator: Operator) -> Self {
        if let Err(error) = operator.check() {
            panic!("{error}");
        }
        Config::default().builder(operator).expect("the default has no patterns of namespaces")
    }
}

impl Config {
    fn builder(self, operator: Operator) -> Result<EngineBuilder, InvalidNamespacePattern> {
        let name = operator.name().to_owned();
        let mut builder = operator.into_builder(|settings| self.apply_to(settings));
        if !self.all_namespaces {
            let patterns: Vec<NamespacePattern> =
                self.namespaces.iter().map(|text| pattern(text)).collect::<Result<_, _>>()?;
            builder = builder.namespaces(patterns);
        }
        if let Some(client) = self.client {
            builder = builder.client(client);
        }
        if let Some(endpoint) = self.webhooks {
            builder = builder.admission(endpoint);
        }
        if let Some(mut endpoint) = self.probes {
            endpoint.operator.get_or_insert(name);
            builder = builder.probes(endpoint);
        }
        Ok(builder)
    }

    fn apply_to(&self, settings: &mut Settings) {
        let leadership = &mut settings.leadership;
        leadership.mode = self.leadership.unwrap_or(leadership.mode);
        leadership.name = self.lease.clone().or(leadership.name.take());
        leadership.ranges = self.ranges.unwrap_or(leadership.ranges);
        settings.snapshots.file = self.snapshot.clone().or(settings.snapshots.file.take());
        let peering = &mut settings.peering;
        peering.clusterwide |= self.all_namespaces;
        if let Some(standalone) = self.standalone {
            peering.standalone = standalone;
        }
        if let Some(priority) = self.priority {
            peering.priority = priority;
        }
        if let Some(name) = &self.peering {
            peering.name.clone_from(name);
            peering.mandatory = true;
        }
    }
}

/// Names contain no slashes, so slashes can mark regular expressions.
fn pattern(text: &str) -> Result<NamespacePattern, InvalidNamespacePattern> {
    match text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
        Some(regex) => NamespacePattern::regex(regex),
        None => Ok(NamespacePattern::new(text)),
    }
}

impl Running {
    /// Waits until the startup handlers are done and the cluster is connected. Returns false if the
    /// operator ended before that.
    pub async fn ready(&mut self) -> bool {
        self.ready.wait_for(|is_ready| *is_ready).await.is_ok()
    }

    /// The status of the operator.
    #[must_use]
    pub fn status(&self) -> &StatusHandle {
        &self.status
    }

    /// Returns a handle that can ask the operator to stop from anywhere.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stop.clone()
    }

    /// Asks the operator to stop and waits until it has ended.
    ///
    /// # Errors
    /// See [`Operator::run_until`].
    ///
    /// # Panics
    /// Propagates a panic of the engine.
    pub async fn stop(self) -> Result<(), RunError> {
        self.stop.stop();
        self.wait().await
    }

    /// Waits until the operator has ended.
    ///
    /// # Errors
    /// See [`Operator::run_until`].
    ///
    /// # Panics
    /// Propagates a panic of the engine.
    pub async fn wait(self) -> Result<(), RunError> {
        match self.task.await {
            Ok(outcome) => Ok(outcome?),
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => Ok(()),
        }
    }
}
