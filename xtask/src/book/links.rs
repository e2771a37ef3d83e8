//! Links between the pages: every file exists, every anchor is a heading, every page is listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// All problems with links.
pub(super) fn check(pages: &BTreeMap<String, String>, folder: &Path) -> Vec<String> {
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|(name, text)| (name.as_str(), headings(text))).collect();
    let mut complaints = Vec::new();
    for (name, text) in pages {
        for (line, target) in targets(text) {
            if let Some(problem) = problem(name, &target, &anchors, folder) {
                complaints.push(format!("docs/src/{name}:{line}: {problem}"));
            }
        }
    }
    let summary = pages.get("SUMMARY.md").map(String::as_str).unwrap_or_default();
    for name in pages.keys().filter(|name| *name != "SUMMARY.md") {
        if !summary.contains(&format!("({name})")) {
            complaints.push(format!("docs/src/{name}: is not in SUMMARY.md"));
        }
    }
    complaints
}

fn problem(
    page: &str,
    target: &str,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
    folder: &Path,
) -> Option<String> {
    if target.starts_with("http://") || target.starts_with("https://") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match path {
        "" => page.to_owned(),
        path => joined(page, path),
    };
    if !folder.join(&path).exists() {
        return Some(format!("`{target}` leads nowhere"));
    }
    let known = anchors.get(path.as_str());
    let is_missing = !anchor.is_empty() && known.is_some_and(|known| !known.contains(anchor));
    is_missing.then(|| format!("`{target}`: there is no such heading"))
}

/// Resolves a relative path on a page from the book's folder.
fn joined(page: &str, path: &str) -> String {
    let mut parts: Vec<Component<'_>> = Vec::new();
    let whole = Path::new(page).parent().unwrap_or(Path::new("")).join(path);
    for part in whole.components() {
        match (part, parts.last()) {
            (Component::ParentDir, Some(Component::Normal(_))) => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.iter().collect::<PathBuf>().display().to_string()
}

/// The targets of links and images with their lines, and the files of included code.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            let included = line.trim().strip_prefix("{{#include ");
            let path = included.and_then(|rest| rest.strip_suffix("}}"));
            found.extend(path.map(|path| (index + 1, path.trim().to_owned())));
            continue;
        }
        // Text between backticks is also code.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        found.extend(targets.map(|(target, _)| (index + 1, target.to_owned())));
    }
    found
}

/// The anchors of a page, as mdBook generates them from headings.
fn headings(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let title = line.trim_start_matches('#');
        if !is_code && title.len() < line.len() && title.starts_with(' ') {
            let anchor = anchor(title.trim());
            let number = (1..).map(|number| format!("{anchor}-{number}"));
            let mut names = std::iter::once(anchor.clone()).chain(number);
            found.extend(names.find(|name| !found.contains(name)));
        }
    }
    found
}

fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests;
