//! `kopf dev`: rebuilds and restarts the operator of this project after every change, while the
//! cluster and its objects stay.
//!
//! The embedded API server runs in this process, the operator in its own: the operator is restarted
//! whenever its sources change, and the cluster is not affected. This file has the arguments and
//! the start; [`session`] has the loop.

mod installing;
mod logline;
mod process;
mod screen;
mod session;
mod sources;
mod table;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use kopf_apiserver::{Listening, Server};
use kopf_client::{Cluster, Policy};
use kopf_ui::{Operator, Serving, Ui};

use super::cluster::taken;
use super::project::{Project, ProjectArguments};
use crate::failure::Failure;
use crate::kubeconfig;
use crate::load::{self, LoadError};
use installing::Installing;
use screen::Screen;
use session::Session;

/// The arguments of `kopf dev`.
#[derive(Args)]
pub(super) struct Arguments {
    /// Work with the cluster of this kubeconfig instead of an embedded one
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Install the operator's definitions also in the cluster of `--kubeconfig`
    #[arg(long, requires = "kubeconfig")]
    install: bool,
    /// Manifests to load first: files or folders
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with = "kubeconfig")]
    load: Vec<PathBuf>,
    /// Where to write the kubeconfig of the embedded cluster
    #[arg(
        long,
        value_name = "FILE",
        default_value = "kopf.kubeconfig",
        conflicts_with = "kubeconfig"
    )]
    write_kubeconfig: PathBuf,
    /// The port of the embedded API server on loopback; 0 picks a free one
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "kubeconfig")]
    port: u16,
    /// The port of the web UI on loopback; 0 picks a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    ui_port: u16,
    /// Do not serve the web UI
    #[arg(long)]
    no_ui: bool,
    /// Print plain lines, also on a terminal
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    project: ProjectArguments,
    /// Options of the operator's own `run` command, after `--`
    #[arg(last = true, value_name = "OPTION", help_heading = "Operator")]
    options: Vec<String>,
}

/// The cluster that the operator works with.
struct World {
    kubeconfig: PathBuf,
    /// Held during the session; `None` for an external cluster.
    listening: Option<Listening>,
    /// The embedded server, if there is one.
    server: Option<Server>,
    /// A client for read access.
    client: kube::Client,
}

/// Runs until asked to stop; returns the exit code.
pub(super) async fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let documents = load::read(&arguments.load).map_err(LoadError::explained)?;
    let project = Project::locate(&arguments.project).await?;
    let probes = free_address()?;
    let (world, client) = match &arguments.kubeconfig {
        Some(path) => elsewhere(path, arguments.install).await?,
        None => {
            let (world, client) = embedded(arguments, probes).await?;
            (world, Some(client))
        }
    };
    let ui = match arguments.no_ui {
        true => None,
        false => Some(serve_ui(&world, probes, arguments.ui_port).await?),
    };
    let mut screen = Screen::new(arguments.plain, &project.bin);
    announce(&mut screen, &world, ui.as_ref());
    let session = Session {
        project,
        kubeconfig: world.kubeconfig,
        is_embedded: world.listening.is_some(),
        probes,
        options: arguments.options.clone(),
        installing: client.map(|client| Installing::new(client, documents)),
        screen,
    };
    let code = session.run().await?;
    if let Some(listening) = world.listening {
        listening.shutdown().await;
    }
    Ok(code)
}

/// An API server in this process.
async fn embedded(
    arguments: &Arguments,
    probes: SocketAddr,
) -> Result<(World, kube::Client), Failure> {
    let server = Server::new();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let listening = server.listen(address).await.map_err(|error| taken(error, address))?;
    let path = &arguments.write_kubeconfig;
    kubeconfig::write(path, &listening.kubeconfig(), Some(probes))?;
    let client = kube::Client::new(server.service(), "default");
    let kubeconfig = path.canonicalize().unwrap_or_else(|_| path.clone());
    let world = World {
        kubeconfig,
        listening: Some(listening),
        server: Some(server),
        client: client.clone(),
    };
    Ok((world, client))
}

/// The cluster of a kubeconfig; with a client only if something will be installed there.
async fn elsewhere(
    path: &std::path::Path,
    install: bool,
) -> Result<(World, Option<kube::Client>), Failure> {
    let usage = |error: anyhow::Error| {
        Failure::usage(error).hint("give the kubeconfig of a cluster that can be reached")
    };
    let read = kube::config::Kubeconfig::read_from(path)
        .with_context(|| format!("could not read the kubeconfig `{}`", path.display()))
        .map_err(usage)?;
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(read, &options).await;
    let config = config.context("could not use the kubeconfig").map_err(usage)?;
    let client = kube::Client::try_from(config)?;
    let kubeconfig = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let world = World { kubeconfig, listening: None, server: None, client: client.clone() };
    Ok((world, install.then_some(client)))
}

/// An address for the operator's probes that stays the same for all its runs.
fn free_address() -> Result<SocketAddr, Failure> {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(socket.local_addr()?)
}

/// Serves the web UI of the operator's latest run.
async fn serve_ui(world: &World, probes: SocketAddr, port: u16) -> Result<Serving, Failure> {
    let ui = Ui {
        operator: Operator::on(probes),
        cluster: Cluster::with_client(world.client.clone(), Policy::default()),
        embedded: world.server.clone(),
        kubeconfig: Some(world.kubeconfig.display().to_string()),
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let serving = ui.serve(address).await;
    serving.map_err(|error| Failure::new(error).hint("leave `--ui-port` out to take a free one"))
}

fn announce(screen: &mut Screen, world: &World, ui: Option<&Serving>) {
    match &world.listening {
        Some(listening) => {
            screen.say(&format!("A Kubernetes API server is ready at {}", listening.url()));
            screen.say("In another terminal:");
            screen.say("");
            screen.say(&format!("    export KUBECONFIG={}", world.kubeconfig.display()));
            screen.say("");
        }
        None => screen.say(&format!("Working with `{}`", world.kubeconfig.display())),
    }
    if let Some(ui) = ui {
        screen.say(&format!("The web UI is at {}", ui.url()));
    }
    screen.say("Press Ctrl-C to stop, twice to stop at once.");
}
