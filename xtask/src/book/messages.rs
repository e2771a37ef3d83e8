//! Checks that messages quoted in the book exist literally in the sources.
//!
//! A quoted message is code of at least three words in the first column of a table on the
//! troubleshooting page. It does not include variable parts.

use std::path::Path;

use anyhow::Result;

/// The page that quotes messages.
pub(super) const PAGE: &str = "troubleshooting.md";
/// Shorter quotations are names.
const WORDS_MIN: usize = 3;

/// Reports quotations that no source contains.
pub(super) fn check(page: &str, root: &Path) -> Result<Vec<String>> {
    let sources = sources(&root.join("crates"))?;
    let is_unknown = |(_, message): &(usize, &str)| !sources.contains(message);
    let unknown = quoted(page).into_iter().filter(is_unknown);
    Ok(unknown
        .map(|(line, message)| format!("docs/src/{PAGE}:{line}: nobody says `{message}`"))
        .collect())
}

/// The messages of a page, with their lines.
fn quoted(page: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (index, line) in page.lines().enumerate() {
        let Some(cell) = line.strip_prefix("| ").and_then(|rest| rest.split(" | ").next()) else {
            continue;
        };
        let messages = cell.split('`').skip(1).step_by(2);
        let is_message =
            |text: &&str| text.split_whitespace().count() >= WORDS_MIN && !text.contains("...");
        found.extend(messages.filter(is_message).map(|text| (index + 1, text)));
    }
    found
}

/// All sources as one text, with multi-line strings joined.
fn sources(folder: &Path) -> Result<String> {
    let mut all = String::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                all += &joined(&std::fs::read_to_string(path)?);
            }
        }
    }
    Ok(all)
}

fn joined(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let mut joined = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        joined += part.trim_start();
    }
    joined
}

#[cfg(test)]
mod tests;
