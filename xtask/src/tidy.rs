//! Checks the rules of the style guide that no other tool checks.
//!
//! Reads tracked files only; every complaint names the file, the line and the rule.

mod rules;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{layers, steps};

/// Runs all checks over the repository and prints what is wrong.
pub(crate) fn run() -> Result<()> {
    println!("── tidy");
    let root = steps::root();
    let mut complaints = Vec::new();
    for path in tracked_files(&root)? {
        // Files deleted but not yet committed are listed too.
        let Ok(bytes) = std::fs::read(root.join(&path)) else { continue };
        if let Ok(text) = String::from_utf8(bytes) {
            complaints.extend(rules::check(&path, &text));
        }
    }
    complaints.extend(layers::check(&root)?);
    if complaints.is_empty() {
        return Ok(());
    }
    for complaint in &complaints {
        println!("{complaint}");
    }
    bail!("tidy found {} problems", complaints.len());
}

fn tracked_files(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("could not list the tracked files with git")?;
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}
