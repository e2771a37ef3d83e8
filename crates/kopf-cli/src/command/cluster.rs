//! `kopf cluster`: the embedded API server as a separate process, for any client.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use kopf_apiserver::{ListenError, Listening, Server};
use serde_json::json;

use super::output::Output;
use crate::failure::Failure;
use crate::kubeconfig;
use crate::load::{self, LoadError};

/// The arguments of `kopf cluster`.
#[derive(Args)]
pub(super) struct Arguments {
    /// The port on loopback; 0 picks a free one
    #[arg(long, default_value_t = 0, value_name = "N")]
    port: u16,
    /// Where to write the kubeconfig
    #[arg(long, default_value = "kopf.kubeconfig", value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Manifests to load before serving: files or folders
    #[arg(long, value_name = "PATH", num_args = 1..)]
    load: Vec<PathBuf>,
    /// Keep the data in this folder; it survives restarts and crashes
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Run without nodes: Pods stay pending
    #[arg(long)]
    no_nodes: bool,
    /// Enforce roles and bindings; without it everything is allowed
    #[arg(long)]
    rbac: bool,
    /// Have MutatingAdmissionPolicies, which are off by default in this release
    #[arg(long)]
    mutating_policies: bool,
    /// Append one line of JSON per request to this file
    #[arg(long, value_name = "FILE")]
    audit_log: Option<PathBuf>,
    /// How to print where the server is, once it is ready
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

/// Serves until asked to stop.
pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let documents = load::read(&arguments.load).map_err(LoadError::explained)?;
    let builder = Server::builder().rbac(arguments.rbac).nodes(!arguments.no_nodes);
    let mut builder =
        builder.controller_events(true).mutating_policies(arguments.mutating_policies);
    if let Some(path) = &arguments.audit_log {
        builder = builder.audit_log(open_log(path)?);
    }
    let server = match &arguments.data_dir {
        None => builder.build(),
        Some(folder) => builder.open(folder).map_err(|error| {
            Failure::new(error).hint("the folder was left as it is; give another `--data-dir`")
        })?,
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let listening = server.listen(address).await.map_err(|error| taken(error, address))?;
    let client = kube::Client::new(server.service(), "default");
    load::apply(&client, &documents).await.map_err(LoadError::explained)?;
    kubeconfig::write(&arguments.kubeconfig, &listening.kubeconfig(), None)?;
    announce(arguments, &listening, documents.len())?;
    stop_requested().await?;
    listening.shutdown().await;
    if arguments.output == Output::Table {
        println!("Stopped.");
    }
    Ok(())
}

/// Opens the audit log, readable only by its owner: it contains who requested what.
fn open_log(path: &Path) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    let opened = options.append(true).create(true).mode(0o600).open(path);
    opened.map_err(|error| {
        let problem = format!("could not open the audit log {}: {error}", path.display());
        Failure::usage(std::io::Error::new(error.kind(), problem))
    })
}

pub(super) fn taken(error: ListenError, address: SocketAddr) -> Failure {
    let is_taken = matches!(&error,
        ListenError::Bind { source, .. } if source.kind() == ErrorKind::AddrInUse);
    let failure = Failure::new(error);
    if is_taken {
        return failure.hint(format!(
            "port {} is in use: stop the other program, or leave `--port` out",
            address.port()
        ));
    }
    failure
}

fn announce(arguments: &Arguments, listening: &Listening, loaded: usize) -> Result<(), Failure> {
    let path = arguments.kubeconfig.canonicalize();
    let path = path.as_ref().unwrap_or(&arguments.kubeconfig);
    let document = json!({"url": listening.url(), "kubeconfig": path, "loaded": loaded});
    if let Some(text) = arguments.output.text(&document)? {
        print!("{text}");
        return Ok(std::io::stdout().flush()?);
    }
    println!("A Kubernetes API server is ready at {}", listening.url());
    if loaded > 0 {
        println!("Loaded {}.", kopf_core::logtext::counted(loaded, "object"));
    }
    println!("\n    export KUBECONFIG={}\n", path.display());
    println!("Press Ctrl-C to stop.");
    Ok(())
}

/// Resolves when Ctrl-C is pressed or the process is asked to terminate.
pub(super) async fn stop_requested() -> Result<(), Failure> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed?,
        _ = terminate.recv() => {}
    }
    Ok(())
}
