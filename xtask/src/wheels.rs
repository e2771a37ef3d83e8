//! `cargo xtask wheels`: builds the wheels of the Python package for this processor, and checks them.
//!
//! Zig is the linker, so that a wheel works with the oldest C library of its tag; maturin checks
//! which symbols the module needs, and refuses a tag that is not true. What this machine cannot build
//! is skipped with a message. The wheels are in `wheels` of the target directory.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::cluster::target;
use crate::console_program::ConsoleProgram;
use crate::python::environment;
use crate::steps::{command_step, root};

/// What builds and links.
const TOOLS: [&str; 2] = ["maturin>=1.9,<2", "ziglang"];

/// The largest file that PyPI accepts.
const BYTES_MAX: u64 = 100 << 20;

/// How long the example may take to handle its object.
const PATIENCE: Duration = Duration::from_mins(1);

/// What can be typed after `cargo xtask wheels`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The profile of cargo.
    #[arg(long, default_value = "release")]
    profile: String,
}

/// A wheel by the C library that it is for.
struct Wheel {
    /// The end of the name of Rust's target.
    library: &'static str,
    /// The platform, as pip names it.
    tag: &'static str,
}

const WHEELS: [Wheel; 2] = [
    Wheel { library: "gnu", tag: "manylinux2014" },
    Wheel { library: "musl", tag: "musllinux_1_2" },
];

/// Builds and checks all wheels that this machine can build.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if std::env::consts::OS != "linux" {
        println!("── wheels: SKIPPED, they are only built on Linux");
        return Ok(());
    }
    let python = environment("wheels-venv", &TOOLS)?;
    for wheel in &WHEELS {
        let triple = format!("{}-unknown-linux-{}", std::env::consts::ARCH, wheel.library);
        if !has_target(&triple) {
            println!("── {}: SKIPPED, first run `rustup target add {triple}`", wheel.tag);
            continue;
        }
        let file = wheel.build(&python, &triple, &arguments.profile)?;
        let bytes = std::fs::metadata(&file)?.len();
        println!("── {}: {} kB", file.display(), bytes / 1000);
        ensure!(bytes <= BYTES_MAX, "{bytes} bytes are too many for PyPI");
        if cfg!(target_env = "gnu") == (wheel.library == "gnu") {
            try_out(&file)?;
        }
    }
    Ok(())
}

impl Wheel {
    /// Builds the wheel, and returns its file.
    fn build(&self, python: &Path, triple: &str, profile: &str) -> Result<PathBuf> {
        let folder = target().join("wheels").join(self.tag);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).context("could not remove the former wheel")?;
        }
        let mut build = Command::new(python);
        build.args(["-m", "maturin", "build", "--zig", "--locked", "--auditwheel", "check"]);
        build.args(["--profile", profile, "--target", triple, "--compatibility", self.tag]);
        build.arg("--out").arg(&folder).current_dir(root());
        // Zig is found next to this Python.
        build.env("PATH", path_with(python.parent().context("a program without a folder")?)?);
        command_step(self.tag, build)?;
        let entry = std::fs::read_dir(&folder)?.next().context("there is no wheel")?;
        Ok(entry?.path())
    }
}

/// Whether Rust's library for this target is installed.
fn has_target(triple: &str) -> bool {
    let print = ["--print", "target-libdir", "--target", triple];
    let output = Command::new("rustc").args(print).output();
    output.is_ok_and(|it| Path::new(String::from_utf8_lossy(&it.stdout).trim()).exists())
}

/// Installs the wheel where nothing else is, and runs the first example.
fn try_out(wheel: &Path) -> Result<()> {
    let folder = target().join("wheels-fresh-venv");
    let mut create = Command::new("python3");
    create.args(["-m", "venv", "--clear"]).arg(&folder);
    command_step("fresh virtual environment", create)?;
    let programs = folder.join("bin");
    let mut install = Command::new(programs.join("python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).arg(wheel);
    command_step("installation of the wheel", install)?;
    let mut version = Command::new(programs.join("kopf"));
    version.arg("--version");
    command_step("kopf --version", version)?;
    let example = "examples/python/01-minimal";
    let line = format!(
        "'{}' run --embedded --load {example}/objects.yaml {example}/operator.py 2>&1",
        programs.join("kopf").display()
    );
    let mut shell = Command::new("bash");
    shell.args(["-c", &line]).current_dir(root());
    println!("── {line}");
    let operator = ConsoleProgram::start(shell)?;
    let handled = operator.wait_for("first says: Hello, Rust!", PATIENCE);
    let status = operator.interrupt()?;
    handled.context("the example of the wheel did not handle its object")?;
    ensure!(status.success(), "the example did not end well on Ctrl-C ({status})");
    Ok(())
}

fn path_with(folder: &Path) -> Result<std::ffi::OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).context("a folder of PATH cannot be in a PATH")
}
