//! `run --embedded`: the operator and a Kubernetes API server in the same process.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use kopf_apiserver::{Listening, Server, User};
use kopf_cli::definitions::{self, Wanted};
use kopf_cli::load::{Document, LoadError};
use kopf_cli::{kubeconfig, load, manifests};
use kopf_core::Handler;
use kopf_engine::ProbesEndpoint;
use serde_json::Value;

use super::arguments::{RunArguments, webhooks};
use super::{Failure, Logs, Purpose, plan, until_stopped};
use crate::{Config, Operator};

#[derive(Args)]
#[command(next_help_heading = "Without a cluster")]
pub(super) struct EmbeddedArguments {
    /// Run a Kubernetes API server in this process and work with it
    #[arg(long)]
    pub(super) embedded: bool,
    /// Manifests to load first: files or folders
    #[arg(long, value_name = "PATH", num_args = 1.., requires = "embedded")]
    load: Vec<PathBuf>,
    /// Where to write the kubeconfig for kubectl and other clients
    #[arg(long, value_name = "FILE", default_value = "kopf.kubeconfig", requires = "embedded")]
    kubeconfig: PathBuf,
    /// The port of the API server on loopback; 0 picks a free one
    #[arg(long, value_name = "N", default_value_t = 0, requires = "embedded")]
    port: u16,
    /// The port of the web UI on loopback; 0 picks a free one
    #[cfg(feature = "ui")]
    #[arg(long, value_name = "N", default_value_t = 0, requires = "embedded")]
    ui_port: u16,
    /// Do not serve the web UI
    #[cfg(feature = "ui")]
    #[arg(long, requires = "embedded")]
    no_ui: bool,
    /// Enforce RBAC, with the operator as its own service account with exactly the generated roles
    #[arg(long, requires = "embedded")]
    rbac: bool,
}

/// Starts the server, installs what the operator needs, and runs the operator on it.
pub(super) async fn run(
    operator: Operator,
    arguments: &RunArguments,
    config: Config,
    purpose: Purpose<'_>,
) -> Result<(), Failure> {
    let embedded = &arguments.embedded;
    let documents = load::read(&embedded.load).map_err(LoadError::explained)?;
    let server = Server::builder().rbac(embedded.rbac).build();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, embedded.port));
    let listening = server
        .listen(address)
        .await
        .map_err(|error| Failure::from(error).hint("leave `--port` out to take a free one"))?;
    let client = kube::Client::new(server.service(), "default");
    let handlers: Vec<_> = operator.handlers().cloned().collect();
    let wanted = Wanted {
        definitions: manifests::definitions(&handlers),
        selectors: operator.handlers().flat_map(Handler::resources).cloned().collect(),
    };
    let sample = definitions::prepare(&client, wanted, documents).await?;
    if let Purpose::Plan(output) = purpose {
        arguments.logging().install();
        let config = Config { client: Some(client), ..config };
        let outcome = plan::run(operator, config, output).await;
        listening.shutdown().await;
        return outcome;
    }
    // Always enabled in this mode, so that `kopf explain` can query the operator.
    let mut probes = match config.probes.clone() {
        Some(endpoint) => endpoint,
        None => ProbesEndpoint::on_loopback()?,
    };
    // Users of this machine can access the cluster itself anyway.
    probes.actions = true;
    kubeconfig::write(&embedded.kubeconfig, &listening.kubeconfig(), Some(probes.address))?;
    #[cfg(feature = "ui")]
    let ui = serve_ui(embedded, &server, probes.address).await?;
    #[cfg(feature = "ui")]
    let ui_url = ui.as_ref().map(kopf_ui::Serving::url);
    #[cfg(not(feature = "ui"))]
    let ui_url: Option<String> = None;
    announce(&embedded.kubeconfig, &listening, sample.as_ref(), ui_url.as_deref());
    // From here on, the operator logs.
    let _logs = Logs::install(arguments, operator.name())?;
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let webhooks = config.webhooks.unwrap_or_else(|| webhooks(operator.name(), loopback));
    let client = match embedded.rbac {
        true => {
            let secure_metrics = probes.metrics.is_some();
            with_own_rights(&server, &client, &operator, &handlers, secure_metrics).await?
        }
        false => client,
    };
    let config =
        Config { client: Some(client), webhooks: Some(webhooks), probes: Some(probes), ..config };
    let outcome = match operator.start(config).await {
        Ok(running) => until_stopped(running).await,
        Err(error) => Err(error.into()),
    };
    listening.shutdown().await;
    if outcome.is_err() {
        // The file is useless now. The failure itself is reported.
        let _ = std::fs::remove_file(&embedded.kubeconfig);
    }
    outcome
}

/// Grants the operator the rights that `manifests` would grant it. Returns a client with only these
/// rights.
async fn with_own_rights(
    server: &Server,
    admin: &kube::Client,
    operator: &Operator,
    handlers: &[Handler],
    secure_metrics: bool,
) -> Result<kube::Client, Failure> {
    let options = manifests::Options {
        name: operator.name().to_owned(),
        namespace: "default".into(),
        serves: None,
        image: String::new(),
        program: String::new(),
        replicas: 1,
        shards: false,
        secure_metrics,
        metrics_from: Vec::new(),
    };
    let rights = manifests::rights_of(handlers, &operator.settings, &options);
    let documents = manifests::rights_documents(&rights, &options).into_iter();
    let documents: Vec<Document> = documents
        .map(|manifest| Document { place: "the rights of the operator".into(), manifest })
        .collect();
    load::apply(admin, &documents).await?;
    let account = User::service_account(&options.namespace, &options.name);
    Ok(kube::Client::new(server.service_as(account), options.namespace))
}

/// Serves the operator's web UI on loopback.
#[cfg(feature = "ui")]
async fn serve_ui(
    arguments: &EmbeddedArguments,
    server: &Server,
    probes: SocketAddr,
) -> Result<Option<kopf_ui::Serving>, Failure> {
    if arguments.no_ui {
        return Ok(None);
    }
    let client = kube::Client::new(server.service(), "default");
    let path = &arguments.kubeconfig;
    let kubeconfig = path.canonicalize().unwrap_or_else(|_| path.clone());
    // The operator may listen on all addresses.
    let probes = match probes.ip().is_unspecified() {
        true => SocketAddr::from((Ipv4Addr::LOCALHOST, probes.port())),
        false => probes,
    };
    let ui = kopf_ui::Ui {
        operator: kopf_ui::Operator::on(probes),
        cluster: kopf_client::Cluster::with_client(client, kopf_client::Policy::default()),
        embedded: Some(server.clone()),
        kubeconfig: Some(kubeconfig.display().to_string()),
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.ui_port));
    let serving = ui
        .serve(address)
        .await
        .map_err(|error| Failure::from(error).hint("leave `--ui-port` out to take a free one"))?;
    Ok(Some(serving))
}

fn announce(path: &Path, listening: &Listening, sample: Option<&Value>, ui: Option<&str>) {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    println!("A Kubernetes API server is ready at {}. In another terminal:\n", listening.url());
    println!("    export KUBECONFIG={}", path.display());
    if let Some(sample) = sample {
        println!("    kubectl create -f - <<< '{sample}'");
    }
    if let Some(ui) = ui {
        println!("\nThe web UI is at {ui}");
    }
    println!("\nPress Ctrl-C to stop.");
}
