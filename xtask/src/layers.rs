//! Compares the arrows between our crates with the table in `ARCHITECTURE.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

/// Complaints about arrows that the table does not allow, and about crates it does not know.
pub(crate) fn check(root: &Path) -> Result<Vec<String>> {
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md"))
        .context("could not read ARCHITECTURE.md")?;
    Ok(compare(&allowed(&page), &arrows(&metadata(root)?)))
}

type Arrows = BTreeMap<String, BTreeSet<String>>;

fn metadata(root: &Path) -> Result<Value> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("could not run `cargo metadata`")?;
    serde_json::from_slice(&output.stdout).context("could not read the answer of `cargo metadata`")
}

/// The rows of the table: `` | `crate` | purpose | `may`, `use` | ... ``.
fn allowed(page: &str) -> Arrows {
    let mut arrows = Arrows::new();
    for line in page.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, _, may_use, ..] = cells.as_slice() else { continue };
        let Some(name) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) else {
            continue;
        };
        if name.starts_with("kopf") || name == "xtask" {
            let targets = may_use.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            arrows.insert(name.to_owned(), targets);
        }
    }
    arrows
}

/// The real arrows between our crates, without those used in tests only.
fn arrows(metadata: &Value) -> Arrows {
    let empty = Vec::new();
    let packages = metadata["packages"].as_array().unwrap_or(&empty);
    let mut arrows = Arrows::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let is_ours = name.starts_with("kopf") || name == "xtask";
        if !is_ours {
            continue;
        }
        let targets = package["dependencies"].as_array().unwrap_or(&empty).iter();
        let targets = targets
            .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|target| target.starts_with("kopf"))
            .map(str::to_owned);
        arrows.insert(name.to_owned(), targets.collect());
    }
    arrows
}

fn compare(allowed: &Arrows, real: &Arrows) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, targets) in real {
        let Some(permitted) = allowed.get(name) else {
            complaints.push(format!("ARCHITECTURE.md: the table has no row for `{name}`"));
            continue;
        };
        for target in targets.difference(permitted) {
            complaints.push(format!("{name} must not depend on {target} (ARCHITECTURE.md)"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests;
