//! `cargo xtask archive`: packs the command `kopf` for `cargo binstall`, and checks the archive.
//!
//! The name and the content of the archive follow from `package.metadata.binstall` of `kopf-cli`, so
//! that the archive is always the one that `cargo binstall` looks for. It is in `archives` of the
//! target directory; a release has to contain it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cluster::target;
use crate::steps::{command_step, root};

/// The package and its program.
const PACKAGE: &str = "kopf-cli";
const PROGRAM: &str = "kopf";

/// The arguments of `cargo xtask archive`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Rust's name of the platform, such as `x86_64-unknown-linux-musl`; this one by default
    #[arg(long)]
    target: Option<String>,
    /// The profile of cargo
    #[arg(long, default_value = "release")]
    profile: String,
}

/// Builds the program, packs it, and runs the packed program if it is for this platform.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let host = host()?;
    let platform = arguments.target.as_deref().unwrap_or(&host);
    let mut build = Command::new("cargo");
    build.args(["build", "--locked", "--package", PACKAGE, "--profile", &arguments.profile]);
    let mut folder = target();
    if let Some(platform) = &arguments.target {
        build.args(["--target", platform]);
        folder.push(platform);
    }
    build.current_dir(root());
    command_step("archive: cargo build", build)?;
    // The folder of the profile `dev` has another name.
    folder.push(if arguments.profile == "dev" { "debug" } else { &arguments.profile });
    let archive = pack(&folder, platform)?;
    println!(
        "── archive: {} ({} kB)",
        archive.display(),
        std::fs::metadata(&archive)?.len() / 1000
    );
    if platform == host { check(&archive) } else { Ok(()) }
}

/// Packs the program of a folder.
fn pack(folder: &Path, platform: &str) -> Result<PathBuf> {
    let package = package()?;
    let archives = target().join("archives");
    std::fs::create_dir_all(&archives)?;
    let archive = archives.join(file_name(&package, platform)?);
    let mut tar = Command::new("tar");
    tar.arg("--create").arg("--gzip").arg("--file").arg(&archive);
    tar.arg("--directory").arg(folder).arg(PROGRAM);
    command_step("archive: tar", tar)?;
    Ok(archive)
}

/// Unpacks the archive into an empty folder, and runs the program.
fn check(archive: &Path) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("kopf-archive-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--file"]).arg(archive).arg("--directory").arg(&folder);
    let mut program = Command::new(folder.join(PROGRAM));
    program.arg("--version");
    let outcome = command_step("archive: unpack", tar)
        .and_then(|()| command_step("archive: kopf --version", program));
    std::fs::remove_dir_all(&folder)?;
    outcome
}

/// The metadata of the package.
fn package() -> Result<Value> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .context("could not run cargo")?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let found = packages.into_iter().find(|it| it["name"] == PACKAGE);
    found.cloned().with_context(|| format!("there is no package {PACKAGE}"))
}

/// The name of the archive: the last part of the URL from which `cargo binstall` downloads it.
fn file_name(package: &Value, platform: &str) -> Result<String> {
    let binstall = &package["metadata"]["binstall"];
    let url = binstall["pkg-url"].as_str().context("binstall has no URL")?;
    let name = url.rsplit('/').next().unwrap_or_default();
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let name = name
        .replace("{ name }", text("name"))
        .replace("{ version }", text("version"))
        .replace("{ target }", platform);
    ensure!(!name.contains('{'), "`{name}` has a variable that is not known here");
    ensure!(binstall["pkg-fmt"] == "tgz" && name.ends_with(".tgz"), "`{name}` is not a .tgz");
    ensure!(binstall["bin-dir"] == "{ bin }{ binary-ext }", "the program is at the top");
    Ok(name)
}

/// Rust's name of this platform.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("could not run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say what it compiles for")?.to_owned())
}

#[cfg(test)]
mod tests;
