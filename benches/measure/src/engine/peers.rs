//! Builds and starts the programs in `benches/peers`.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::server::Server;
use super::subject::Subject;
use crate::cluster::target;
use crate::steps::{command_step, root};

/// The number of connections for writes of the floor.
const FLOOR_CONNECTIONS: &str = "16";

/// The program that uses controller-runtime.
pub(crate) fn go() -> PathBuf {
    folder().join("controller-runtime")
}

/// The program in C.
pub(crate) fn floor() -> PathBuf {
    folder().join("floor")
}

fn josdk() -> PathBuf {
    folder().join("josdk")
}

fn folder() -> PathBuf {
    target().join("bench-peers")
}

/// The source folder of a peer.
fn sources(name: &str) -> PathBuf {
    root().join("benches").join("peers").join(name)
}

/// Builds a peer; fails on machines without its tools.
pub(crate) fn build(subject: Subject) -> Result<()> {
    std::fs::create_dir_all(folder())?;
    let (name, command) = match subject {
        Subject::Go | Subject::GoWorkers => {
            let mut command = Command::new("go");
            command.args(["build", "-trimpath", "-ldflags=-s -w", "-o"]).arg(go()).arg(".");
            command.current_dir(sources("controller-runtime"));
            ("controller-runtime", command)
        }
        Subject::Josdk => {
            let mut command = Command::new("mvn");
            command.args(["--quiet", "--batch-mode", "package"]);
            command.arg(format!("-Dpeer.directory={}", josdk().display()));
            command.current_dir(sources("josdk"));
            ("JOSDK", command)
        }
        Subject::Floor => {
            let mut command = Command::new("cc");
            command.arg("-O2").arg("-o").arg(floor()).arg(sources("floor").join("floor.c"));
            ("floor", command)
        }
        _ => bail!("{} is no peer", subject.name()),
    };
    command_step(name, command)
}

/// The command of a peer; the server's address and the case are in its environment.
pub(crate) fn command(subject: Subject, server: &Server) -> Command {
    match subject {
        Subject::Josdk => {
            let mut command = Command::new("java");
            // The server rejects WebSocket upgrades, which would be retried for 20 s.
            command.arg("-Dkubernetes.request.retry.backoffLimit=0");
            command.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=error");
            command.arg("-jar").arg(josdk().join("peer.jar"));
            command
        }
        Subject::Floor => {
            let mut command = Command::new(floor());
            command.arg(&server.kubeconfig).args(["watch", FLOOR_CONNECTIONS, "kopf"]);
            command
        }
        _ => {
            let mut command = Command::new(go());
            let workers = if subject == Subject::GoWorkers { "16" } else { "1" };
            command.env("WORKERS", workers);
            command
        }
    }
}

/// Patches existing objects as fast as possible, and returns the time in milliseconds.
pub(crate) fn raw_patches(server: &Server, prefix: &str, count: usize) -> Result<f64> {
    use super::machine::{Side, on_cores_of};
    let mut command = Command::new(floor());
    command.arg(&server.kubeconfig).args(["patch", FLOOR_CONNECTIONS, "kopf", prefix]);
    command.arg(count.to_string());
    let output = on_cores_of(Side::Operator, || command.output())??;
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(answer["seconds"].as_f64().context("the floor tells no time")? * 1e3)
}
