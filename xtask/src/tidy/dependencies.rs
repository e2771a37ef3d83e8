//! Finds dependencies that a crate declares and does not use.
//!
//! A dependency is used if the crate's sources name it. A crate that needs one for its features, or
//! for the code that a macro generates, says so in its manifest:
//! `[package.metadata.tidy] indirect = ["name"]`. Examples are left out: they show what a project
//! needs.

use std::path::Path;

use serde_json::Value;

/// Complaints about unused dependencies; `files` are paths with their texts.
pub(super) fn check(root: &Path, metadata: &Value, files: &[(String, String)]) -> Vec<String> {
    let empty = Vec::new();
    let mut complaints = Vec::new();
    for package in metadata["packages"].as_array().unwrap_or(&empty) {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let Some(folder) = manifest.parent().and_then(|path| path.strip_prefix(root).ok()) else {
            continue;
        };
        if folder.starts_with("examples") {
            continue;
        }
        let prefix = format!("{}/", folder.display());
        let own =
            files.iter().filter(|(path, _)| path.starts_with(&prefix) && path.ends_with(".rs"));
        let texts: Vec<&str> = own.map(|(_, text)| text.as_str()).collect();
        complaints.extend(
            unused(package, &texts)
                .into_iter()
                .map(|name| format!("{prefix}Cargo.toml: the dependency `{name}` is not used")),
        );
    }
    complaints
}

fn unused(package: &Value, texts: &[&str]) -> Vec<String> {
    let empty = Vec::new();
    let exempt = package["metadata"]["tidy"]["indirect"].as_array().unwrap_or(&empty);
    let dependencies = package["dependencies"].as_array().unwrap_or(&empty).iter();
    let names = dependencies.filter_map(|dependency| {
        let name = dependency["name"].as_str()?;
        Some((name, dependency["rename"].as_str().unwrap_or(name)))
    });
    let unused = names.filter(|(name, code_name)| {
        let is_exempt = exempt.iter().any(|other| other.as_str() == Some(name));
        !is_exempt && !texts.iter().any(|text| names_crate(text, &code_name.replace('-', "_")))
    });
    unused.map(|(name, _)| name.to_owned()).collect()
}

/// Whether a source file names a crate as a whole word.
fn names_crate(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let is_use = before.trim_end().ends_with("use") || before.ends_with("extern crate ");
        let is_path = after.starts_with("::") || is_use || after.starts_with("]");
        !before.ends_with(is_word) && !after.starts_with(is_word) && is_path
    })
}

#[cfg(test)]
mod tests;
