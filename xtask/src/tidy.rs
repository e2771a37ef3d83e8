//! Checks the rules of the style guide that no other tool checks.
//!
//! Reads tracked files only; every problem names the file, the line and the rule.

mod dependencies;
mod layers;
pub(crate) mod modules;
mod rules;
mod shapes;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::steps;

/// Runs all checks on the repository and prints the problems.
pub(crate) fn run() -> Result<()> {
    println!("── tidy");
    let root = steps::root();
    let files = texts(&root)?;
    let metadata = metadata(&root)?;
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md"))
        .context("could not read ARCHITECTURE.md")?;
    let mut complaints: Vec<String> =
        files.iter().flat_map(|(path, text)| rules::check(path, text)).collect();
    complaints.extend(layers::check(&root, &page, &metadata));
    complaints.extend(dependencies::check(&root, &metadata, &files));
    complaints.extend(modules::check(&root, &files)?);
    complaints.extend(shapes::check(&files));
    if complaints.is_empty() {
        return Ok(());
    }
    for complaint in &complaints {
        println!("{complaint}");
    }
    bail!("tidy found {} problems", complaints.len());
}

/// The paths and texts of all tracked text files.
pub(crate) fn texts(root: &Path) -> Result<Vec<(String, String)>> {
    // Files that are deleted but not yet committed are also listed.
    let texts = tracked_files(root)?.into_iter().filter_map(|path| {
        let bytes = std::fs::read(root.join(&path)).ok()?;
        Some((path, String::from_utf8(bytes).ok()?))
    });
    Ok(texts.collect())
}

fn metadata(root: &Path) -> Result<Value> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("could not run `cargo metadata`")?;
    serde_json::from_slice(&output.stdout).context("could not read the answer of `cargo metadata`")
}

fn tracked_files(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("could not list the tracked files with git")?;
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}
