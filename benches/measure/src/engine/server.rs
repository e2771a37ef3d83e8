//! The server side of a run: a `bench-server` process that creates objects and measures times.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::machine::{Side, on_cores_of};
use super::process::Process;
use super::subject::Subject;
use crate::cluster::target;

/// A server with one operator to be measured.
pub(crate) struct Server {
    pub(crate) kubeconfig: PathBuf,
    _process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    /// Starts a default server.
    pub(crate) fn start(subject: Subject) -> Result<Self> {
        Self::start_as(subject, None)
    }

    /// Starts a server with an option: `--status` gives the resource a status subresource, `--slow`
    /// delays writes as a disk would.
    pub(crate) fn start_as(subject: Subject, option: Option<&str>) -> Result<Self> {
        let name = format!("bench-{}.kubeconfig", std::process::id());
        let kubeconfig = target().join(name);
        let mut command = Command::new(target().join("release/bench-server"));
        command.arg(&kubeconfig).arg(subject.mark());
        command.args(option);
        command
            // Clearing huge pages took up to a fifth of the server's time, at a different moment in
            // each run.
            .env("MIMALLOC_ALLOW_THP", "0")
            // Memory allocated at the start is kept for later.
            .env("MIMALLOC_PURGE_DELAY", "-1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = on_cores_of(Side::Server, || command.spawn())?
            .context("could not start the server of the benchmark")?;
        let input = child.stdin.take().context("the server has no input")?;
        let output = BufReader::new(child.stdout.take().context("the server has no output")?);
        let mut server = Self { kubeconfig, _process: Process(child), input, output };
        server.answer("the start")?;
        Ok(server)
    }

    /// Sends one command and returns the response.
    pub(crate) fn ask(&mut self, command: &str) -> Result<Value> {
        writeln!(self.input, "{command}")?;
        self.input.flush()?;
        self.answer(command)
    }

    fn answer(&mut self, command: &str) -> Result<Value> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line)
            .with_context(|| format!("the server answered `{command}` with `{line}`"))?;
        if let Some(error) = answer["error"].as_str() {
            bail!("the server could not `{command}`: {error}");
        }
        Ok(answer)
    }
}
