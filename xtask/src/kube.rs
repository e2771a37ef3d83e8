//! `cargo xtask kube`: a real control plane on loopback, to compare ours with.
//!
//! Responsible for the order in which etcd, kube-apiserver and kube-controller-manager start and
//! stop. Binaries come from `build`, certificates from `pki`, pid files from `process`; the result
//! is a kubeconfig in the cache folder.

mod build;
mod flags;
mod pki;
mod plane;
mod process;
mod state;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use crate::http::{Client, Request};
use crate::kubeconfig::Endpoint;
pub(crate) use build::version;
pub(crate) use plane::ControlPlane;
use state::State;

/// How long the API server may take before `up` gives up.
const READY_TIMEOUT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(200);

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the pinned binaries into the cache, if they are not there yet.
    Build,
    /// Start a control plane, or say that it already runs.
    Up(UpArguments),
    /// Stop a control plane and remove what it left.
    Down(Instance),
    /// Tell which parts of a control plane are alive.
    Status(Instance),
    /// Print the exports for a running control plane.
    Env(Instance),
}

#[derive(Args, Clone)]
struct Instance {
    /// Which control plane: several can run side by side.
    #[arg(long, default_value = "default")]
    name: String,
}

#[derive(Args)]
struct UpArguments {
    #[command(flatten)]
    instance: Instance,
    /// Port of the API server; a free one if not given.
    #[arg(long)]
    port: Option<u16>,
    /// Leave kube-controller-manager out.
    #[arg(long)]
    no_controllers: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Build => build::ensure().map(|folder| println!("{}", folder.display())),
        Command::Up(up) => start(up),
        Command::Down(instance) => stop(&State::of(&instance.name)?),
        Command::Status(instance) => status(&State::of(&instance.name)?),
        Command::Env(instance) => print_env(&State::of(&instance.name)?),
    }
}

/// The kubeconfig of a running control plane, for other commands.
pub(crate) fn kubeconfig_of(name: &str) -> Result<PathBuf> {
    let state = State::of(name)?;
    if !process::is_alive(&state.pid_file("kube-apiserver"), "kube-apiserver") {
        bail!("control plane `{name}` is not running; run `cargo xtask kube up --name {name}`");
    }
    Ok(state.kubeconfig())
}

fn start(arguments: &UpArguments) -> Result<()> {
    let state = State::of(&arguments.instance.name)?;
    let binaries = build::ensure()?;
    if process::is_alive(&state.pid_file("kube-apiserver"), "kube-apiserver") {
        println!("# already running");
        return print_env(&state);
    }
    // Parts may have outlived a killed API server.
    stop(&state)?;
    let began = Instant::now();
    state.reset()?;
    let plan = flags::Plan::new(state.clone(), arguments.port)?;
    plan.write_files()?;
    let outcome = launch(&plan, &binaries, !arguments.no_controllers);
    if let Err(error) = outcome {
        let logs = state.log_tail("kube-apiserver");
        stop(&state)?;
        return Err(error.context(format!("kube-apiserver wrote:\n{logs}")));
    }
    println!("# ready after {:.1} s", began.elapsed().as_secs_f64());
    print_env(&state)
}

fn launch(plan: &flags::Plan, binaries: &std::path::Path, controllers: bool) -> Result<()> {
    let state = &plan.state;
    // To the standard error, because shells evaluate the output.
    eprintln!("starting etcd and kube-apiserver");
    process::spawn(binaries, "etcd", &plan.etcd(), state)?;
    process::spawn(binaries, "kube-apiserver", &plan.apiserver(), state)?;
    wait_ready(state)?;
    if controllers {
        eprintln!("starting kube-controller-manager");
        process::spawn(binaries, "kube-controller-manager", &plan.controllers(), state)?;
        wait_for(state, "/api/v1/namespaces/default/serviceaccounts/default")?;
    }
    Ok(())
}

fn wait_ready(state: &State) -> Result<()> {
    wait_for(state, "/readyz")?;
    wait_for(state, "/api/v1/namespaces/default")
}

fn wait_for(state: &State, path: &str) -> Result<()> {
    let endpoint = Endpoint::from_file(&state.kubeconfig())?;
    let runtime = crate::http::runtime()?;
    let mut client = Client::new(endpoint)?;
    let deadline = Instant::now() + READY_TIMEOUT;
    loop {
        let answer = runtime.block_on(client.send(&Request::get(path)));
        if answer.is_ok_and(|answer| answer.status == 200) {
            return Ok(());
        }
        if !process::is_alive(&state.pid_file("kube-apiserver"), "kube-apiserver") {
            bail!("kube-apiserver ended before it answered `{path}`");
        }
        if Instant::now() > deadline {
            bail!("`{path}` did not answer 200 within {READY_TIMEOUT:?}");
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn stop(state: &State) -> Result<()> {
    for part in state.parts().iter().rev() {
        process::stop(&state.pid_file(part), part)
            .with_context(|| format!("could not stop {part}"))?;
    }
    state.remove()
}

fn status(state: &State) -> Result<()> {
    for part in state.parts() {
        let alive = process::is_alive(&state.pid_file(part), part);
        println!("{part}: {}", if alive { "running" } else { "stopped" });
    }
    Ok(())
}

fn print_env(state: &State) -> Result<()> {
    let endpoint =
        Endpoint::from_file(&state.kubeconfig()).context("no control plane of that name is up")?;
    println!("export KUBECONFIG={}", state.kubeconfig().display());
    println!("export KUBE_URL={}", endpoint.server);
    println!("export KUBE_CA={}", state.file("ca.crt").display());
    for (user, token) in state.tokens()? {
        println!("export KUBE_TOKEN_{}={token}", user.to_uppercase());
    }
    println!("export KUBE_BIN={}", build::folder()?.display());
    Ok(())
}
