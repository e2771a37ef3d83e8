//! The command-line arguments: Kopf's options, and how they map to the configuration.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args, Parser, Subcommand};
use kopf_cli::failure::Failure;
use kopf_core::settings::LeadershipMode;
use kopf_engine::{AdmissionEndpoint, MetricsEndpoint, Pem, ProbesEndpoint};
use kopf_model::shards::RANGES_MAX;
use tracing::level_filters::LevelFilter;

use super::output::OutputArguments;
use crate::Config;
use crate::logging::{LogFormat, Logging};

/// The priority of an operator on a developer's machine, as in Kopf.
const DEV_PRIORITY: i64 = 666;

/// A Kubernetes operator
#[derive(Parser)]
#[command(
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Watch the cluster and handle what happens there
    Run(Box<RunArguments>),
    /// Show what would be done about desired children, without doing it
    Plan(Box<PlanArguments>),
    /// Show what the operator reacts to
    Describe(OutputArguments),
    /// Generate what to deploy: CRDs, minimal permissions, a Deployment; or a Helm chart, or an OLM bundle
    #[cfg(feature = "embedded")]
    Manifests(super::manifests::ManifestsArguments),
}

#[derive(Args)]
pub(super) struct RunArguments {
    #[command(flatten)]
    pub(super) scope: ScopeArguments,
    /// Ignore other operators of the same kind
    #[arg(long, env = "KOPF_RUN_STANDALONE", action = ArgAction::SetTrue,
        value_parser = FalseyValueParser::new(), hide_env = true)]
    standalone: bool,
    /// Run with the priority of a developer's machine, pausing the deployed operator
    #[arg(long, env = "KOPF_RUN_DEV", action = ArgAction::SetTrue,
        value_parser = FalseyValueParser::new(), hide_env = true)]
    pub(super) dev: bool,
    /// Act only while this replica leads; the others stand by. With the name of the Lease, which is
    /// the operator's by default
    #[arg(long, value_name = "NAME", env = "KOPF_RUN_LEADER_ELECT", hide_env = true,
        num_args = 0..=1, require_equals = true, default_missing_value = "")]
    leader_elect: Option<String>,
    /// Share the objects with the other replicas, by this many ranges (`auto`: 64)
    #[arg(long, value_name = "auto|N", env = "KOPF_RUN_SHARDS", hide_env = true)]
    shards: Option<Shards>,
    /// Remember in this file which objects are handled, so that a restart does not list them
    #[arg(long, value_name = "FILE", env = "KOPF_RUN_SNAPSHOT", hide_env = true,
        conflicts_with_all = ["leader_elect", "shards"])]
    snapshot: Option<PathBuf>,
    /// Serve probes here, such as `http://0.0.0.0:8080/healthz`
    #[arg(
        short = 'L',
        long,
        value_name = "URL",
        env = "KOPF_RUN_LIVENESS_ENDPOINT",
        hide_env = true
    )]
    liveness: Option<String>,
    /// Serve metrics on this port instead, over TLS, such as `https://0.0.0.0:8443`, only to clients
    /// that may `get` the path `/metrics` in the cluster
    #[arg(long, value_name = "URL", env = "KOPF_RUN_METRICS", hide_env = true)]
    metrics: Option<String>,
    /// The file of the certificate for metrics, read again when it is renewed; else self-signed
    #[arg(
        long,
        value_name = "FILE",
        env = "KOPF_RUN_METRICS_CERTIFICATE",
        hide_env = true,
        requires_all = ["metrics", "metrics_key"]
    )]
    metrics_certificate: Option<PathBuf>,
    /// The file of the key for metrics
    #[arg(
        long,
        value_name = "FILE",
        env = "KOPF_RUN_METRICS_KEY",
        hide_env = true,
        requires = "metrics_certificate"
    )]
    metrics_key: Option<PathBuf>,
    /// Let people who reach the debug endpoint run objects again, retry, pause and resume them
    #[arg(long, env = "KOPF_RUN_ALLOW_ACTIONS", action = ArgAction::SetTrue,
        value_parser = FalseyValueParser::new(), hide_env = true)]
    allow_actions: bool,
    /// Answer webhooks here, such as `0.0.0.0:9443`
    #[arg(long, value_name = "ADDRESS", env = "KOPF_RUN_WEBHOOK", hide_env = true)]
    webhook: Option<SocketAddr>,
    /// The service that leads the cluster to the webhooks
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        env = "KOPF_RUN_WEBHOOK_SERVICE",
        hide_env = true,
        requires = "webhook"
    )]
    webhook_service: Option<String>,
    /// The host name under which the cluster reaches the webhooks, when there is no service
    #[arg(
        long,
        value_name = "HOST",
        env = "KOPF_RUN_WEBHOOK_HOST",
        hide_env = true,
        requires = "webhook"
    )]
    webhook_host: Option<String>,
    /// The file of the certificate for webhooks, read again when it is renewed; else self-signed
    #[arg(
        long,
        value_name = "FILE",
        env = "KOPF_RUN_WEBHOOK_CERTIFICATE",
        hide_env = true,
        requires = "webhook_key"
    )]
    webhook_certificate: Option<PathBuf>,
    /// The file of the key for webhooks
    #[arg(
        long,
        value_name = "FILE",
        env = "KOPF_RUN_WEBHOOK_KEY",
        hide_env = true,
        requires = "webhook_certificate"
    )]
    webhook_key: Option<PathBuf>,
    /// The file of the authority that issued the certificate, for the cluster to trust
    #[arg(
        long,
        value_name = "FILE",
        env = "KOPF_RUN_WEBHOOK_AUTHORITY",
        hide_env = true,
        requires = "webhook_certificate"
    )]
    webhook_authority: Option<PathBuf>,
    /// The peering object that coordinates operators of the same kind
    #[arg(short = 'P', long, value_name = "NAME", env = "KOPF_RUN_PEERING", hide_env = true)]
    peering: Option<String>,
    /// The priority among operators of the same kind; the highest one works
    #[arg(
        short,
        long,
        value_name = "N",
        env = "KOPF_RUN_PRIORITY",
        allow_hyphen_values = true,
        hide_env = true
    )]
    priority: Option<i64>,
    #[command(flatten)]
    logs: LogArguments,
    #[cfg(feature = "embedded")]
    #[command(flatten)]
    pub(super) embedded: super::embedded::EmbeddedArguments,
}

/// The options of `plan`.
#[derive(Args)]
pub(super) struct PlanArguments {
    #[command(flatten)]
    scope: ScopeArguments,
    #[command(flatten)]
    logs: LogArguments,
    #[command(flatten)]
    output: OutputArguments,
    #[cfg(feature = "embedded")]
    #[command(flatten)]
    embedded: super::embedded::EmbeddedArguments,
}

#[derive(Args)]
pub(super) struct ScopeArguments {
    /// Work in all namespaces
    #[arg(short = 'A', long, env = "KOPF_RUN_CLUSTERWIDE", conflicts_with = "namespaces",
        action = ArgAction::SetTrue, value_parser = FalseyValueParser::new(), hide_env = true)]
    pub(super) all_namespaces: bool,
    /// Work in this namespace, or in those of a pattern such as `team-*,!team-x`; repeatable
    #[arg(
        short,
        long = "namespace",
        value_name = "NAME",
        env = "KOPF_RUN_NAMESPACES",
        value_delimiter = ' ',
        hide_env = true
    )]
    pub(super) namespaces: Vec<String>,
}

#[derive(Args)]
#[command(next_help_heading = "Logs")]
struct LogArguments {
    /// Log everything that happens to objects
    #[arg(short, long, env = "KOPF_RUN_VERBOSE", action = ArgAction::SetTrue,
        value_parser = FalseyValueParser::new(), hide_env = true)]
    verbose: bool,
    /// Log everything, including libraries
    #[arg(short, long, env = "KOPF_RUN_DEBUG", action = ArgAction::SetTrue,
        value_parser = FalseyValueParser::new(), hide_env = true)]
    debug: bool,
    /// Log only warnings and errors
    #[arg(short, long, env = "KOPF_RUN_QUIET", action = ArgAction::SetTrue,
        value_parser = FalseyValueParser::new(), hide_env = true)]
    quiet: bool,
    /// How lines look: plain, full or json
    #[arg(
        long,
        value_name = "FORMAT",
        env = "KOPF_RUN_LOG_FORMAT",
        default_value = "full",
        hide_env = true
    )]
    log_format: LogFormat,
    /// The key of the object's reference in JSON lines
    #[arg(
        long,
        value_name = "KEY",
        env = "KOPF_RUN_LOG_REFKEY",
        default_value = "object",
        hide_env = true
    )]
    log_refkey: String,
    /// Begin lines with `[namespace/name]`
    #[arg(long, env = "KOPF_RUN_LOG_PREFIX", action = ArgAction::SetTrue, hide_env = true,
        value_parser = FalseyValueParser::new(), overrides_with = "no_log_prefix")]
    log_prefix: bool,
    /// Do not begin lines with `[namespace/name]`
    #[arg(long, action = ArgAction::SetTrue, overrides_with = "log_prefix")]
    no_log_prefix: bool,
}

/// The number of ranges; `None` means the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shards(Option<u32>);

impl std::str::FromStr for Shards {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<u32>() {
            Ok(count) if (1..=RANGES_MAX).contains(&count) => Ok(Self(Some(count))),
            _ if text == "auto" => Ok(Self(None)),
            _ => Err(format!("write `auto`, or a number from 1 to {RANGES_MAX}")),
        }
    }
}

impl PlanArguments {
    /// Splits into the options for running the plan and those for showing it.
    pub(super) fn split(self) -> (RunArguments, OutputArguments) {
        let arguments = self;
        let run = RunArguments {
            scope: arguments.scope,
            standalone: false,
            dev: false,
            leader_elect: None,
            shards: None,
            snapshot: None,
            liveness: None,
            metrics: None,
            metrics_certificate: None,
            metrics_key: None,
            allow_actions: false,
            webhook: None,
            webhook_service: None,
            webhook_host: None,
            webhook_certificate: None,
            webhook_key: None,
            webhook_authority: None,
            peering: None,
            priority: None,
            logs: arguments.logs,
            #[cfg(feature = "embedded")]
            embedded: arguments.embedded,
        };
        (run, arguments.output)
    }
}

impl RunArguments {
    /// Returns the logging options.
    pub(super) fn logging(&self) -> Logging {
        let logs = &self.logs;
        let level = match (logs.debug || logs.verbose, logs.quiet) {
            (true, _) => LevelFilter::DEBUG,
            (false, true) => LevelFilter::WARN,
            (false, false) => LevelFilter::INFO,
        };
        let prefix = (logs.log_prefix || logs.no_log_prefix).then_some(logs.log_prefix);
        let (format, refkey) = (logs.log_format, logs.log_refkey.clone());
        Logging { format, level, debug: logs.debug, prefix, refkey, ..Logging::default() }
    }

    /// Returns the configuration of the operator.
    ///
    /// # Errors
    /// Fails if the probes endpoint is not an address.
    pub(super) fn config(&self, operator: &str) -> Result<Config, Failure> {
        let mut namespaces = self.scope.namespaces.clone();
        // The old name of the variable, which Kopf still accepts.
        if let Ok(namespace) = std::env::var("KOPF_RUN_NAMESPACE") {
            namespaces.extend(namespace.split_whitespace().map(str::to_owned));
        }
        let mut probes = self.liveness.as_deref().map(endpoint).transpose()?;
        let metrics = self.metrics()?;
        if metrics.is_some() && probes.is_none() {
            probes = Some(ProbesEndpoint::on_loopback()?);
        }
        if let Some(probes) = &mut probes {
            probes.actions = self.allow_actions;
            probes.metrics = metrics;
        }
        let leadership = match (&self.leader_elect, &self.shards) {
            (_, Some(_)) => Some(LeadershipMode::Shards),
            (Some(_), None) => Some(LeadershipMode::Standby),
            (None, None) => None,
        };
        let lease = self.leader_elect.clone().filter(|name| !name.is_empty());
        Ok(Config {
            namespaces,
            all_namespaces: self.scope.all_namespaces,
            standalone: self.standalone.then_some(true),
            lease: leadership.map(|_| lease.unwrap_or_else(|| operator.to_owned())),
            leadership,
            ranges: self.shards.and_then(|shards| shards.0),
            snapshot: self.snapshot.clone(),
            priority: if self.dev { Some(DEV_PRIORITY) } else { self.priority },
            peering: self.peering.clone(),
            webhooks: self.webhook.map(|address| self.webhooks(operator, address)).transpose()?,
            probes,
            ..Config::default()
        })
    }

    /// The endpoint of protected metrics; `None` if metrics are served with the probes.
    fn metrics(&self) -> Result<Option<MetricsEndpoint>, Failure> {
        let Some(url) = &self.metrics else { return Ok(None) };
        let mistake = |why: String| {
            Failure::usage(format!("`{url}` is not an endpoint for metrics: {why}"))
                .hint("write it as `https://0.0.0.0:8443`")
        };
        let (address, path) = address(url, "https").map_err(mistake)?;
        if !["/", "/metrics"].contains(&path.as_str()) {
            return Err(mistake("their path is `/metrics`".into()));
        }
        let certificate = self.metrics_certificate.clone().zip(self.metrics_key.clone());
        let certificate = certificate.map(|(chain, key)| (Pem::File(chain), Pem::File(key)));
        Ok(Some(MetricsEndpoint { address, certificate }))
    }

    fn webhooks(&self, operator: &str, address: SocketAddr) -> Result<AdmissionEndpoint, Failure> {
        let service = match &self.webhook_service {
            Some(text) => Some(text.split_once('/').ok_or_else(|| {
                Failure::usage(format!("`{text}` is not a service: write it as `namespace/name`"))
            })?),
            None => None,
        };
        let service = service.map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
        Ok(AdmissionEndpoint {
            host: self.webhook_host.clone(),
            certificate: self
                .webhook_certificate
                .clone()
                .zip(self.webhook_key.clone())
                .map(|(chain, key)| (Pem::File(chain), Pem::File(key))),
            authority: self.webhook_authority.clone().map(Pem::File),
            service,
            ..webhooks(operator, address)
        })
    }
}

/// Webhooks at an address, with their own certificate and configuration.
pub(super) fn webhooks(operator: &str, address: SocketAddr) -> AdmissionEndpoint {
    AdmissionEndpoint::managed(address, format!("{operator}.kopf.dev"))
}

/// Parses the endpoint of probes.
fn endpoint(url: &str) -> Result<ProbesEndpoint, Failure> {
    let (address, path) = address(url, "http").map_err(|why| {
        Failure::usage(format!("`{url}` is not an endpoint for probes: {why}"))
            .hint("write it as `http://0.0.0.0:8080/healthz`")
    })?;
    Ok(ProbesEndpoint::new(address, path))
}

/// Parses `scheme://host:port/path`; the default host is localhost, the default port that of the
/// scheme.
fn address(url: &str, scheme: &str) -> Result<(SocketAddr, String), String> {
    let rest = url.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://"));
    let rest = rest.ok_or_else(|| format!("it does not begin with `{scheme}://`"))?;
    let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) => {
            (host, port.parse().map_err(|_| "its port is not a number up to 65535".to_owned())?)
        }
        None if scheme == "https" => (place, 443),
        None => (place, 80),
    };
    let host = if host.is_empty() { "localhost" } else { host.trim_matches(['[', ']']) };
    let mut addresses = (host, port).to_socket_addrs().map_err(|error| error.to_string())?;
    let address = addresses.next().ok_or_else(|| "its host has no address".to_owned())?;
    Ok((address, if path.is_empty() { "/".to_owned() } else { path.to_owned() }))
}
