//! `cargo xtask demos`: runs every example as described in its README, with a real kubectl.
//!
//! Starts each example with a cluster in its process, runs `examples/NAME/demo.sh` next to it, and
//! stops it. If the script fails, the operator's output is shown as well.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::build;
use crate::cluster::{Cluster, target};
use crate::steps::root;

/// How long an example may take to start its cluster.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long an example may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// The line of a script with additional arguments for the program.
const ARGUMENTS: &str = "# arguments:";
/// The line of a script with a variable for itself and the program, such as `PLACE=host:$PORT` with
/// a free port.
const VARIABLE: &str = "# variable:";
/// The line of a script whose program needs a separate cluster.
const CLUSTER: &str = "# beside: kopf cluster";

/// The arguments of `cargo xtask demos`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The examples, such as `load-test`; all that have a `demo.sh` if none is given.
    names: Vec<String>,
    /// How many run at the same time.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
}

impl Default for Arguments {
    fn default() -> Self {
        Self { names: Vec::new(), jobs: 4 }
    }
}

/// Runs the demonstrations; reports all failures.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let names = match arguments.names.as_slice() {
        [] => all()?,
        names => names.to_vec(),
    };
    build(&names)?;
    let cluster = needs_cluster(&names)?.then(|| Cluster::start("dev")).transpose()?;
    let started = Instant::now();
    let (queue, failed) = (Mutex::new(names.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.clamp(1, names.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("nobody panics with it").next();
                    let Some(name) = next else { return };
                    let begun = Instant::now();
                    let outcome = demonstrate(name, cluster.as_ref());
                    println!("── demo of {name}: {}", summary(&outcome, begun.elapsed()));
                    if outcome.is_err() {
                        failed.lock().expect("nobody panics with it").push(name.clone());
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("all threads have ended well");
    ensure!(failed.is_empty(), "these demonstrations failed: {}", failed.join(", "));
    println!("── demos: {} done in {:.0?}", names.len(), started.elapsed());
    Ok(())
}

fn summary(outcome: &Result<()>, time: Duration) -> String {
    match outcome {
        Ok(()) => format!("works ({time:.1?})"),
        Err(error) => format!("FAILED ({time:.1?})\n{error:#}"),
    }
}

/// All examples, the slowest first.
pub(crate) fn all() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join("examples"))? {
        let entry = entry?;
        if entry.path().join("demo.sh").exists() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort_by_key(|name| (!script(name).contains("sleep 60"), name.clone()));
    Ok(names)
}

fn script_path(name: &str) -> PathBuf {
    root().join("examples").join(name).join("demo.sh")
}

pub(crate) fn script(name: &str) -> String {
    std::fs::read_to_string(script_path(name)).unwrap_or_default()
}

fn needs_cluster(names: &[String]) -> Result<bool> {
    for name in names {
        ensure!(script_path(name).exists(), "there is no `examples/{name}/demo.sh`");
    }
    Ok(names.iter().any(|name| script(name).contains(CLUSTER)))
}

pub(crate) fn build(names: &[String]) -> Result<()> {
    let packages: Vec<String> = names.iter().map(|name| format!("example-{name}")).collect();
    build::packages("examples", packages.iter().map(String::as_str))
}

/// One example, running.
pub(crate) struct Example {
    process: Child,
    folder: PathBuf,
    kubeconfig: PathBuf,
    program: PathBuf,
}

fn demonstrate(name: &str, cluster: Option<&Cluster>) -> Result<()> {
    let script = script(name);
    let beside = cluster.filter(|_| script.contains(CLUSTER));
    let folder = target().join("demos").join(format!("{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let outcome = play(name, &script, &folder, beside);
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    std::fs::remove_dir_all(&folder)?;
    outcome.with_context(|| {
        let last: Vec<&str> = log.lines().rev().take(40).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        format!("the operator said last:\n{}\n", last.join("\n"))
    })
}

fn play(name: &str, script: &str, folder: &Path, beside: Option<&Cluster>) -> Result<()> {
    let variables = variables(script)?;
    let mut example = Example::start(name, script, folder, beside, &variables)?;
    example.wait()?;
    let performed = perform(name, &example, &variables);
    let stopped = example.stop();
    performed.and(stopped)
}

/// Runs the script of an example that is running.
pub(crate) fn perform(name: &str, example: &Example, variables: &[(String, String)]) -> Result<()> {
    let output = Command::new("bash")
        .args(["-eu", "-o", "pipefail", "-c", "source examples/demo.bash; set -x; source \"$1\""])
        .arg("demo")
        .arg(script_path(name))
        .current_dir(root())
        .env("KUBECONFIG", &example.kubeconfig)
        // kubectl caches data of a cluster by its port, and ports are reused.
        .env("KUBECACHEDIR", example.folder.join("cache"))
        .env("LOG", example.folder.join("log"))
        .env("FOLDER", &example.folder)
        .env("PROGRAM", &example.program)
        .env("OPERATOR", example.process.id().to_string())
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .output()
        .context("could not start `bash`")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        let done = String::from_utf8_lossy(&output.stderr);
        bail!("{said}\n{done}\n`examples/{name}/demo.sh` failed ({})", output.status);
    }
    Ok(())
}

/// The environment variables of the script and its program.
pub(crate) fn variables(script: &str) -> Result<Vec<(String, String)>> {
    // Not reused at once: the system assigns ports in turn.
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port().to_string();
    let lines = script.lines().filter_map(|line| line.strip_prefix(VARIABLE));
    let mut variables = Vec::new();
    for line in lines {
        let (name, value) = line.trim().split_once('=').context("a variable needs a value")?;
        variables.push((name.to_owned(), value.replace("$PORT", &port)));
    }
    variables.push(("PORT".to_owned(), port));
    Ok(variables)
}

impl Example {
    fn start(
        name: &str,
        script: &str,
        folder: &Path,
        beside: Option<&Cluster>,
        variables: &[(String, String)],
    ) -> Result<Self> {
        let program = target().join("debug").join(format!("example-{name}"));
        let kubeconfig = match beside {
            Some(cluster) => cluster.kubeconfig.clone(),
            None => folder.join("kubeconfig"),
        };
        let log = File::create(folder.join("log"))?;
        let mut command = Command::new(&program);
        match beside {
            Some(_) => command.env("KUBECONFIG", &kubeconfig),
            None => command.args(["run", "--embedded", "--kubeconfig"]).arg(&kubeconfig),
        };
        let more = script.lines().find_map(|line| line.strip_prefix(ARGUMENTS));
        command.args(more.unwrap_or_default().split_whitespace());
        Self::launch(command, &program, folder, &kubeconfig, log, variables)
    }

    /// Starts a program for whose cluster the script gets a kubeconfig.
    pub(crate) fn launch(
        mut command: Command,
        program: &Path,
        folder: &Path,
        kubeconfig: &Path,
        log: File,
        variables: &[(String, String)],
    ) -> Result<Self> {
        command.current_dir(root()).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let process =
            command.spawn().with_context(|| format!("could not start `{}`", program.display()))?;
        let (folder, kubeconfig) = (folder.to_owned(), kubeconfig.to_owned());
        Ok(Self { process, folder, kubeconfig, program: program.to_owned() })
    }

    fn wait(&mut self) -> Result<()> {
        let started = Instant::now();
        while !self.kubeconfig.exists() {
            if let Some(status) = self.process.try_wait()? {
                bail!("the example ended early ({status})");
            }
            ensure!(started.elapsed() < START_TIMEOUT, "the example did not start in time");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Asks it to end; it is a failure if it does not.
    pub(crate) fn stop(&mut self) -> Result<()> {
        let id = self.process.id().to_string();
        // Gone already if the demonstration has stopped it.
        let _ = Command::new("kill").args(["-INT", &id]).stderr(Stdio::null()).status();
        let started = Instant::now();
        while started.elapsed() < STOP_TIMEOUT {
            if let Some(status) = self.process.try_wait()? {
                ensure!(status.success(), "the example ended with {status}");
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the example did not stop in time")
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // Ignored: the process may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
