//! The cargo project of a command: its program and its sources.

mod messages;
mod unused;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;

use crate::failure::Failure;
pub(super) use messages::Diagnostic;
use messages::{Message, Messages};
pub(super) use unused::unused_handlers;

/// Selects a program of a project.
#[derive(Args)]
#[command(next_help_heading = "Project")]
pub(super) struct ProjectArguments {
    /// The package of the operator, in a workspace
    #[arg(short, long, value_name = "NAME")]
    package: Option<String>,
    /// The program of the operator, if the package has several
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,
    /// Build with optimizations
    #[arg(long)]
    release: bool,
}

/// A project with an operator.
#[derive(Clone, Debug)]
pub(super) struct Project {
    /// The package.
    pub(super) package: String,
    /// Its program.
    pub(super) bin: String,
    /// Its folder.
    pub(super) folder: PathBuf,
    /// The folders of the package and of its path dependencies.
    pub(super) roots: Vec<PathBuf>,
    release: bool,
}

/// A built program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Built {
    /// The file.
    pub(super) executable: PathBuf,
    /// Whether it is unchanged.
    pub(super) is_fresh: bool,
}

/// Why a build failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BuildError {
    /// The compiler reported errors.
    Diagnostics(Vec<Diagnostic>),
    /// Cargo failed, or cannot be run.
    Cargo(String),
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    source: Option<String>,
    default_run: Option<String>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Project {
    /// Finds the project of the current folder.
    pub(super) async fn locate(arguments: &ProjectArguments) -> Result<Self, Failure> {
        let here = std::env::current_dir()?;
        let manifest = here.ancestors().map(|folder| folder.join("Cargo.toml"));
        let manifest = manifest.into_iter().find(|path| path.is_file()).ok_or_else(|| {
            Failure::usage(anyhow!("there is no cargo project in `{}`", here.display()))
                .hint("go to the folder of an operator, or create one with `kopf new`")
        })?;
        let metadata = metadata(&manifest).await.map_err(|error| {
            Failure::usage(error).hint("fix the Cargo.toml; `cargo metadata` shows the same error")
        })?;
        let package = choose_package(&metadata, &manifest, arguments.package.as_deref())?;
        let bin = choose_bin(package, arguments.bin.as_deref())?;
        let by_path = metadata.packages.iter().filter(|package| package.source.is_none());
        let roots = by_path.filter_map(|package| package.manifest_path.parent());
        Ok(Self {
            package: package.name.clone(),
            bin,
            folder: package.manifest_path.parent().unwrap_or(&here).to_owned(),
            roots: roots.map(Path::to_path_buf).collect(),
            release: arguments.release,
        })
    }

    /// Builds the program; reports the number of compiled crates after each crate.
    pub(super) async fn build(&self, progress: impl Fn(usize, &str)) -> Result<Built, BuildError> {
        let failed =
            |error: std::io::Error| BuildError::Cargo(format!("could not run cargo: {error}"));
        let mut command = self.command();
        command.arg("--message-format=json").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let stdout = child.stdout.take().expect("it is piped");
        let mut stderr = child.stderr.take().expect("it is piped");
        let reading = async {
            let mut messages = Messages::new(&self.bin);
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if let Message::Compiled(name) = messages.read(&line) {
                    progress(messages.compiled, &name);
                }
            }
            messages
        };
        let complaints = async {
            let mut text = String::new();
            // Unreadable output cannot be shown.
            let _ = stderr.read_to_string(&mut text).await;
            text
        };
        let (messages, text) = tokio::join!(reading, complaints);
        let status = child.wait().await.map_err(failed)?;
        messages.conclude(status.success(), &text)
    }

    /// Builds the program with cargo's own output.
    pub(super) async fn build_visibly(&self) -> Result<PathBuf, Failure> {
        let mut command = self.command();
        command.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
        let output = command.spawn().context("could not run cargo")?.wait_with_output().await?;
        let mut messages = Messages::new(&self.bin);
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            messages.read(line);
        }
        let failure = || {
            Failure::new(anyhow!("the project `{}` could not be built", self.package))
                .hint("fix the compiler errors, then try again")
        };
        match messages.conclude(output.status.success(), "") {
            Ok(built) => Ok(built.executable),
            Err(_) => Err(failure()),
        }
    }

    fn command(&self) -> Command {
        let mut command = cargo();
        command.args(["build", "--package", &self.package, "--bin", &self.bin]);
        if self.release {
            command.arg("--release");
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }
}

/// The cargo to run.
pub(super) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

async fn metadata(manifest: &Path) -> Result<Metadata> {
    let mut command = cargo();
    command.args(["metadata", "--format-version=1", "--manifest-path"]).arg(manifest);
    let output = command.output().await.context("could not run cargo")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let text = text.trim().trim_start_matches("error: ").to_owned();
        return Err(anyhow!(text).context(format!("cargo cannot read `{}`", manifest.display())));
    }
    serde_json::from_slice(&output.stdout).context("could not parse the output of `cargo metadata`")
}

fn choose_package<'a>(
    metadata: &'a Metadata,
    manifest: &Path,
    wanted: Option<&str>,
) -> Result<&'a Package, Failure> {
    let found = metadata.packages.iter().find(|package| match wanted {
        Some(name) => package.name == name && package.source.is_none(),
        None => package.manifest_path == manifest,
    });
    found.ok_or_else(|| match wanted {
        Some(name) => Failure::usage(anyhow!("the workspace has no package `{name}`"))
            .hint("`cargo metadata --no-deps` lists them"),
        None => {
            Failure::usage(anyhow!("`{}` is a workspace without a package", manifest.display()))
                .hint("go to the folder of the operator, or name it with `--package`")
        }
    })
}

fn choose_bin(package: &Package, wanted: Option<&str>) -> Result<String, Failure> {
    let is_bin = |target: &&Target| target.kind.iter().any(|kind| kind == "bin");
    let bins: Vec<&str> =
        package.targets.iter().filter(is_bin).map(|target| target.name.as_str()).collect();
    let name = &package.name;
    match (wanted.or(package.default_run.as_deref()), bins.as_slice()) {
        (Some(wanted), bins) if bins.contains(&wanted) => Ok(wanted.to_owned()),
        (Some(wanted), _) => {
            Err(Failure::usage(anyhow!("the package `{name}` has no program `{wanted}`"))
                .hint(format!("it has: {}", bins.join(", "))))
        }
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => Err(Failure::usage(anyhow!("the package `{name}` has no program"))
            .hint("an operator has a `src/main.rs` that calls `Operator::main`")),
        (None, bins) => Err(Failure::usage(anyhow!("the package `{name}` has several programs"))
            .hint(format!("choose one with `--bin`: {}", bins.join(", ")))),
    }
}
