//! Checks by other tools: spelling by `typos`, licences and sources of dependencies by `cargo
//! deny`.
//!
//! Uses installed tools. Otherwise `typos` comes from PyPI, and `cargo deny` from crates.io, built
//! once in the target directory.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::cluster::target;
use crate::steps::{command_step, root};

/// The versions to install if a tool is missing.
const TYPOS: &str = "typos==1.51.1";
const DENY: &str = "cargo-deny@0.20.2";

/// Checks the spelling; exceptions and foreign texts are listed in `typos.toml`.
pub(crate) fn spelling() -> Result<()> {
    let Some(program) = typos()? else {
        println!("── spelling: SKIPPED, there is neither `typos` nor `python3` on this machine");
        return Ok(());
    };
    let mut check = Command::new(program);
    check.args(["--format", "brief"]).current_dir(root());
    command_step("spelling", check)
}

fn typos() -> Result<Option<PathBuf>> {
    if exists("typos") {
        return Ok(Some("typos".into()));
    }
    let folder = target().join("habits-venv");
    let program = folder.join("bin").join("typos");
    if !program.exists() {
        if !exists("python3") {
            return Ok(None);
        }
        let mut create = Command::new("python3");
        create.args(["-m", "venv"]).arg(&folder);
        command_step("virtual environment", create)?;
        let mut install = Command::new(folder.join("bin").join("python"));
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", TYPOS]);
        command_step("typos from PyPI", install)?;
    }
    Ok(Some(program))
}

/// Checks licences, duplicates and sources of all dependencies, by `deny.toml`.
///
/// Advisories need a database from the network and change from day to day, so they are not part of
/// what a submission must pass.
pub(crate) fn dependencies() -> Result<()> {
    let program = if exists("cargo-deny") { "cargo-deny".into() } else { deny()? };
    let mut check = Command::new(program);
    check.args(["--workspace", "check", "licenses", "bans", "sources"]).current_dir(root());
    command_step("licences and sources of dependencies", check)
}

fn deny() -> Result<PathBuf> {
    let folder = target().join("cargo-deny");
    let program = folder.join("bin").join("cargo-deny");
    if !program.exists() {
        let mut install = Command::new("cargo");
        install.args(["install", "--quiet", "--locked", "--no-default-features", DENY, "--root"]);
        install.arg(&folder).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
        install.env("CARGO_PROFILE_RELEASE_LTO", "off").current_dir(root());
        command_step("cargo-deny from crates.io", install)?;
    }
    Ok(program)
}

fn exists(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}
