//! `kopf ui`: the web UI of a running operator, served on this machine.
//!
//! Queries the operator at its debug endpoint: on this machine, or in its Pod through a port that
//! the cluster's API forwards. `kopf-ui` serves the pages.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use anyhow::anyhow;
use clap::Args;
use kopf_ui::{Operator, OperatorError, Ui};

use super::cluster::stop_requested;
use super::{connection, explain};
use crate::failure::Failure;

/// The arguments of `kopf ui`.
#[derive(Args)]
pub(super) struct Arguments {
    /// Where the running operator serves its probes; found through the kubeconfig by default
    #[arg(long, value_name = "URL", env = "KOPF_OPERATOR", hide_env = true)]
    operator: Option<String>,
    /// The Pod of the operator; its port is forwarded through the API
    #[arg(long, value_name = "NAME", conflicts_with = "operator")]
    pod: Option<String>,
    /// The port of the operator's probes inside its Pod
    #[arg(long, value_name = "N", default_value_t = 8080, requires = "pod")]
    pod_port: u16,
    /// The namespace of the Pod; by default that of the kubeconfig
    #[arg(short, long, value_name = "NAME", requires = "pod")]
    namespace: Option<String>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The port of the UI on loopback; 0 picks a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Only print the address, and open no browser
    #[arg(long)]
    no_open: bool,
}

/// Serves until asked to stop.
pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let context = arguments.context.as_deref();
    let cluster = connection::cluster(context);
    let default_namespace = cluster.connect().await.map_err(connection::no_login)?;
    let operator = match &arguments.pod {
        Some(pod) => {
            let client = cluster.client().await.map_err(connection::no_login)?;
            let namespace = arguments.namespace.as_deref().unwrap_or(&default_namespace);
            Operator::in_pod(client, namespace, pod, arguments.pod_port)
        }
        None => {
            let found = explain::operator(arguments.operator.as_deref(), context)?;
            found.ok_or_else(nobody)?
        }
    };
    operator.status().await.map_err(|error| silent(&operator, error))?;
    let ui = Ui { operator, cluster, embedded: None, kubeconfig: None };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let serving = ui
        .serve(address)
        .await
        .map_err(|error| Failure::new(error).hint("leave `--port` out to take a free one"))?;
    let url = serving.url();
    println!("The web UI is at {url}\n\nPress Ctrl-C to stop.");
    if !arguments.no_open {
        open(&url);
    }
    stop_requested().await?;
    Ok(())
}

fn nobody() -> Failure {
    Failure::usage(anyhow!("the kubeconfig does not say where the operator is"))
        .hint("name it with `--operator http://127.0.0.1:8080`, or its Pod with `--pod NAME`")
}

fn silent(operator: &Operator, error: OperatorError) -> Failure {
    let hint = match &error {
        OperatorError::Forward(_) => {
            "does it run with `--liveness` on that port, and may you create `pods/portforward`?"
        }
        OperatorError::Refused(_) => {
            "is it an operator of this version, and is it on this machine?"
        }
        _ => "is it running, with `--liveness` at that address?",
    };
    Failure::new(anyhow!(error).context(format!("the operator at {operator} does not answer")))
        .hint(hint)
}

/// Opens a browser, if there is one; the address is printed anyway.
fn open(url: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // There may be no desktop.
    let _ = command.spawn();
}
