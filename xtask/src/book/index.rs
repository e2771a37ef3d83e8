//! `llms.txt`: the index of the book for language models, generated from its summary and its pages.

use std::collections::BTreeMap;
use std::fmt::Write as _;

const HEAD: &str = "# Kopf in Rust

> A framework for Kubernetes operators. Handlers are plain functions in Rust or Python; operators
> written for Kopf run unchanged. An API server is embedded for development and tests.

Each page is also there as Markdown, in `docs/src` of the repository. All Rust in it is compiled and
all Python is run in tests.
";

/// The index: one line per page, with its first sentence.
pub(super) fn text(pages: &BTreeMap<String, String>) -> String {
    let mut text = HEAD.to_owned();
    let summary = pages.get("SUMMARY.md").map(String::as_str).unwrap_or_default();
    for line in summary.lines().skip(1) {
        if let Some(part) = line.strip_prefix("# ") {
            let _infallible = write!(text, "\n## {part}\n\n");
        } else if let Some((title, path)) = link(line) {
            let page = pages.get(path).map(String::as_str).unwrap_or_default();
            let address = path.replace(".md", ".html");
            let sentence = sentence(page).map(|it| format!(": {it}")).unwrap_or_default();
            let _infallible = writeln!(text, "- [{title}]({address}){sentence}");
        }
    }
    text
}

/// The title and the path in a line of the summary.
fn link(line: &str) -> Option<(&str, &str)> {
    let (title, rest) = line.trim().strip_prefix("- [")?.split_once("](")?;
    Some((title, rest.strip_suffix(')')?))
}

/// The first sentence of a page, if it starts with one.
fn sentence(page: &str) -> Option<String> {
    let is_prose = |part: &&str| !part.is_empty() && !part.starts_with(['#', '|', '`', '!', '-']);
    // Every second part is code.
    let prose = page.split("```").step_by(2).collect::<Vec<_>>().join("\n\n");
    let paragraph = prose.split("\n\n").map(str::trim).find(is_prose)?;
    let paragraph = unlinked(&paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    let end = paragraph.find(". ").or_else(|| paragraph.strip_suffix(['.', ':']).map(str::len));
    Some(paragraph[..end.unwrap_or(paragraph.len())].to_owned())
}

/// The text with links replaced by their words.
fn unlinked(text: &str) -> String {
    let mut parts = text.split("](");
    let mut plain = parts.next().unwrap_or_default().replace('[', "");
    for part in parts {
        let rest = part.split_once(')').map_or("", |(_, rest)| rest);
        plain += &rest.replace('[', "");
    }
    plain
}

#[cfg(test)]
mod tests;
