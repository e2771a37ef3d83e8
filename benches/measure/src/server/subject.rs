//! Our server in a separate process, as `kopf cluster` runs it.
//!
//! This program starts itself, so that one optimised build is enough: the same library on the same
//! kind of runtime. `--kubeconfig` measures `kopf cluster` itself, or any other server.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kopf_apiserver::Server;

use crate::kubeconfig::Endpoint;

/// How long the process may take to write its kubeconfig.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A build of this program, with arguments that precede its subcommands.
#[derive(Clone, Debug)]
pub(super) struct Program(Vec<String>);

impl Program {
    /// The running program.
    pub(super) fn this() -> Result<Self> {
        let path = std::env::current_exe()?;
        Ok(Self(vec![path.into_os_string().into_string().ok().context("not a UTF-8 path")?]))
    }

    /// Starts one of the hidden subcommands.
    pub(super) fn command(&self, subcommand: &str) -> Command {
        let mut command = Command::new(&self.0[0]);
        command.args(&self.0[1..]).arg(subcommand);
        command
    }
}

impl FromStr for Program {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        ensure!(!words.is_empty(), "no program");
        Ok(Self(words))
    }
}

/// A server process that is stopped when dropped.
pub(super) struct Subject {
    process: Child,
    folder: PathBuf,
    pub(super) endpoint: Endpoint,
    /// The time from starting the program to a usable kubeconfig.
    pub(super) start: Duration,
}

impl Subject {
    /// Starts a subcommand that serves, and waits until it listens.
    pub(super) fn launch(program: &Program, subcommand: &str) -> Result<Self> {
        let folder = format!("kopf-bench-{}-{subcommand}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder)?;
        let kubeconfig = folder.join("kubeconfig");
        let started = Instant::now();
        let mut process = program
            .command(subcommand)
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .stdout(Stdio::null())
            .spawn()
            .context("could not start the server")?;
        while !kubeconfig.exists() {
            if started.elapsed() > START_TIMEOUT || process.try_wait()?.is_some() {
                // Ignored: the process may be gone already.
                let _ = process.kill();
                anyhow::bail!("the server wrote no kubeconfig");
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        let start = started.elapsed();
        let endpoint = Endpoint::from_file(&kubeconfig)?;
        std::fs::remove_file(&kubeconfig)?;
        Ok(Self { process, folder, endpoint, start })
    }

    /// The process id.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // Ignored: the process may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The arguments of the subcommands that serve.
#[derive(clap::Args)]
pub(crate) struct ServeArguments {
    /// Where to write the kubeconfig.
    #[arg(long)]
    kubeconfig: PathBuf,
}

impl ServeArguments {
    /// The path of another file in the folder of the kubeconfig.
    pub(super) fn path_beside(&self, name: &str) -> PathBuf {
        self.kubeconfig.with_file_name(name)
    }

    /// Writes the kubeconfig at once, so that nobody reads a part of it.
    pub(super) fn write(&self, kubeconfig: &str) -> Result<()> {
        let staging = self.kubeconfig.with_extension("new");
        std::fs::write(&staging, kubeconfig)?;
        std::fs::rename(&staging, &self.kubeconfig)?;
        Ok(())
    }
}

/// Serves until the process is killed.
pub(crate) fn serve(arguments: &ServeArguments) -> Result<()> {
    crate::http::runtime()?.block_on(async {
        let server = Server::new();
        let listening = server.listen("127.0.0.1:0".parse()?).await?;
        arguments.write(&listening.kubeconfig())?;
        std::future::pending::<Result<()>>().await
    })
}
