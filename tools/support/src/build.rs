//! Builds our own programs for the commands that run them.
//!
//! Cargo recompiles third-party crates for every selection of packages with different features. CI
//! therefore builds the whole workspace once, and later commands find their programs.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

use crate::steps::{command_step, root, step};

/// The selection of CI: all packages, with non-default features.
pub const WORKSPACE: [&str; 3] = ["--workspace", "--features", "kopf/otlp"];

static IS_ALL_BUILT: AtomicBool = AtomicBool::new(false);

/// Builds the programs and libraries of all packages; later calls of [`packages`] do nothing.
pub fn everything() -> Result<()> {
    let targets = ["--quiet", "--lib", "--bins"];
    step("all programs", "cargo", &[&["build"][..], &WORKSPACE, &targets].concat())?;
    IS_ALL_BUILT.store(true, Ordering::Relaxed);
    Ok(())
}

/// Builds some packages as a named step, unless [`everything`] was built.
pub fn packages<'a>(name: &str, packages: impl IntoIterator<Item = &'a str>) -> Result<()> {
    if IS_ALL_BUILT.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet"]).current_dir(root());
    for package in packages {
        build.args(["-p", package]);
    }
    command_step(name, build)
}
