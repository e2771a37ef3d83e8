//! `cargo xtask package`: checks that every crate that can be published is complete: it can be
//! packaged, and has the metadata that a registry shows.
//!
//! Does not compile the packages: other steps check that everything compiles.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cluster::target;
use crate::steps::{command_step, root};

/// The largest archive that the registry accepts.
const BYTES_MAX: u64 = 10 << 20;
/// The metadata that a registry shows.
const FIELDS: [&str; 5] = ["description", "license", "readme", "keywords", "categories"];

/// Packages all crates and checks the archives.
pub(crate) fn run() -> Result<()> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .context("could not run cargo")?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("there are no packages")?;
    // `publish = false` is an empty list of registries.
    let published: Vec<&Value> = packages.iter().filter(|it| it["publish"].is_null()).collect();
    let mut complaints: Vec<String> = published.iter().flat_map(|it| missing(it)).collect();
    let mut command = Command::new("cargo");
    command.args(["package", "--no-verify", "--allow-dirty", "--quiet", "--target-dir"]);
    command.arg(target()).current_dir(root());
    for package in &published {
        command.args(["--package", package["name"].as_str().unwrap_or_default()]);
    }
    command_step("package: cargo package", command)?;
    for package in &published {
        let name = package["name"].as_str().unwrap_or_default();
        let version = package["version"].as_str().unwrap_or_default();
        let archive = target().join(format!("package/{name}-{version}.crate"));
        let bytes =
            std::fs::metadata(&archive).with_context(|| archive.display().to_string())?.len();
        if bytes > BYTES_MAX {
            complaints.push(format!("{name}: {bytes} bytes are too many for a registry"));
        }
    }
    complaints.iter().for_each(|complaint| println!("{complaint}"));
    ensure!(complaints.is_empty(), "{} crates cannot be published", complaints.len());
    println!("── package: {} crates are complete", published.len());
    Ok(())
}

/// The missing metadata of a crate.
fn missing(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let is_missing = |field: &&&str| match &package[**field] {
        Value::Array(items) => items.is_empty(),
        value => value.is_null(),
    };
    FIELDS.iter().filter(is_missing).map(|field| format!("{name}: has no `{field}`")).collect()
}
