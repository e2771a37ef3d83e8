//! `cargo xtask readme`: runs the README's commands exactly as written.
//!
//! Extracts the commands from the README's `console` blocks, so that what is promised and what is
//! checked cannot differ. The first one must run until an object is handled and succeed on Ctrl-C;
//! the others must succeed.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::console_program::ConsoleProgram;
use crate::steps::{command_step, root};

/// How long the first command may take to handle an object, including a full build.
const PATIENCE: Duration = Duration::from_mins(15);

/// The output of the README's operator once it has handled the object of its manifest.
const HANDLED: &str = "Hello, World!";

/// Runs the README's commands.
pub(crate) fn run() -> Result<()> {
    let text =
        std::fs::read_to_string(root().join("README.md")).context("there is no README.md")?;
    let commands = commands(&text);
    let Some((first, others)) = commands.split_first() else {
        bail!("README.md has no command in a `console` block");
    };
    main_job(first)?;
    for line in others {
        command_step(&format!("README: {line}"), shell(line))?;
    }
    Ok(())
}

/// The lines after `$ ` in the `console` blocks of a Markdown text.
fn commands(text: &str) -> Vec<&str> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in text.lines() {
        match line.trim() {
            "```console" => inside = true,
            "```" => inside = false,
            command if inside => found.extend(command.strip_prefix("$ ")),
            _ => {}
        }
    }
    found
}

fn shell(line: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", line]).current_dir(root());
    command
}

/// Runs the first command, waits until it has handled its object, checks it with kubectl, and sends
/// Ctrl-C.
fn main_job(line: &str) -> Result<()> {
    println!("── README: {line}");
    // Handlers log to standard error.
    let operator = ConsoleProgram::start(shell(&format!("{line} 2>&1")))?;
    let seen = operator
        .wait_for("export KUBECONFIG=", PATIENCE)
        .and_then(|export| operator.wait_for(HANDLED, PATIENCE).map(|_| export))
        .and_then(|export| result_is_visible(&export));
    let status = operator.interrupt()?;
    seen.with_context(|| format!("`{line}` did not do what the README says"))?;
    ensure!(status.success(), "`{line}` did not end well on Ctrl-C ({status})");
    println!("── README: the object was handled, and Ctrl-C ended it well");
    Ok(())
}

/// If kubectl is installed, checks that the result is on the object, as the README says.
fn result_is_visible(export: &str) -> Result<()> {
    if Command::new("kubectl").arg("--help").output().is_err() {
        println!("── README: there is no `kubectl` on this machine, so only the log was read");
        return Ok(());
    }
    let kubeconfig = export.split_once("KUBECONFIG=").map(|(_, path)| PathBuf::from(path.trim()));
    let kubeconfig = kubeconfig.context("no path was printed after KUBECONFIG")?;
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let output = Command::new("kubectl")
            .args(["get", "greetings", "-o", "yaml"])
            .env("KUBECONFIG", &kubeconfig)
            .output()?;
        if String::from_utf8_lossy(&output.stdout).contains("message: Hello, World!") {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "`kubectl get greetings -o yaml` shows no result:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[cfg(test)]
mod tests;
