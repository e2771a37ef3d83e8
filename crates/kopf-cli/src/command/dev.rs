//! `kopf dev`: the operator of this project, built and started again after every change, while the
//! cluster and everything in it stays.
//!
//! The embedded API server lives in this process, the operator in its own: it is replaced as often
//! as its sources change, and the world does not notice. This file has the arguments and the start;
//! [`session`] has the loop.

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

use super::cluster::taken;
use super::project::{Project, ProjectArguments};
use crate::failure::Failure;
use crate::kubeconfig;
use crate::load::{self, LoadError};
use installing::Installing;
use screen::Screen;
use session::Session;

/// What can be typed after `kopf dev`.
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
    /// The port of the embedded API server on loopback; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "kubeconfig")]
    port: u16,
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
    /// Held while the session lasts; none for a cluster elsewhere.
    listening: Option<Listening>,
}

/// Runs until it is asked to stop; tells the exit code.
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
    let mut screen = Screen::new(arguments.plain, &project.bin);
    announce(&mut screen, &world);
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
    Ok((World { kubeconfig, listening: Some(listening) }, client))
}

/// The cluster of a kubeconfig; with a client only if something is to be installed there.
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
    let client = if install {
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(read, &options).await;
        let config = config.context("could not use the kubeconfig").map_err(usage)?;
        Some(kube::Client::try_from(config)?)
    } else {
        None
    };
    let kubeconfig = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Ok((World { kubeconfig, listening: None }, client))
}

/// An address for the operator's probes that stays the same for all its runs.
fn free_address() -> Result<SocketAddr, Failure> {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(socket.local_addr()?)
}

fn announce(screen: &mut Screen, world: &World) {
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
    screen.say("Press Ctrl-C to stop, twice to stop at once.");
}
