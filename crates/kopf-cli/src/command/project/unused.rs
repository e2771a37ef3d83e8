//! Finds handlers that are not part of an operator.
//!
//! Reads sources as text. A handler whose name occurs only in its definition is not part of an
//! operator; the compiler warns about that only if the handler is private.

use std::path::{Path, PathBuf};

/// The maximum number of source files that are read.
const FILES_MAX: usize = 2_000;

/// The handlers of a package that are in no list.
pub(in crate::command) fn unused_handlers(package: &Path) -> Vec<String> {
    let sources = sources(&package.join("src"));
    let texts = sources.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    unused(&texts.collect::<Vec<String>>())
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let entries = std::fs::read_dir(next).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
        if found.len() > FILES_MAX {
            break;
        }
    }
    found
}

/// The handlers whose name occurs only once in all texts.
fn unused(texts: &[String]) -> Vec<String> {
    let code: Vec<&str> = texts.iter().flat_map(|text| text.lines()).map(without_comment).collect();
    // Modules of handlers are collected as a whole.
    if code.iter().any(|line| line.contains("#[kopf::handlers")) {
        return Vec::new();
    }
    let mut found = handlers(&code);
    found.retain(|name| code.iter().map(|line| count(line, name)).sum::<usize>() == 1);
    found
}

fn without_comment(line: &str) -> &str {
    line.split("//").next().unwrap_or(line)
}

/// The names of functions with our attributes.
fn handlers(code: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_ours = false;
    for line in code.iter().map(|line| line.trim()) {
        if line.starts_with("#[kopf::") {
            // Sub-handlers are named by their parents, not in the list.
            let kind = line.strip_prefix("#[kopf::on::");
            is_ours = is_ours || kind.is_some_and(|kind| !kind.starts_with("subhandler"));
        } else if let Some((_, rest)) = line.split_once("fn ") {
            let name: String =
                rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if is_ours && !name.is_empty() {
                names.push(name);
            }
            is_ours = false;
        }
    }
    names
}

/// How often a name occurs in a line as a whole word.
fn count(line: &str, name: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.split(|c| !is_part(c)).filter(|word| *word == name).count()
}

#[cfg(test)]
mod tests {
    use super::unused;

    #[test]
    fn handlers_that_are_in_no_list_are_found() {
        let text = "#[kopf::on::create(Thing)]\npub async fn used() {}\n\
                    #[kopf::on::update(\n    Thing,\n)]\npub async fn forgotten() {} // forgotten\n\
                    fn operator() { kopf::operator!(\"x\", [used]) }\n";
        assert_eq!(unused(&[text.to_owned()]), ["forgotten"]);
    }

    #[test]
    fn lists_may_be_in_other_files() {
        let one = "#[kopf::on::timer(Thing, interval = \"1s\")]\npub fn tick() {}\n".to_owned();
        let other = "kopf::operator!(\"x\", [handlers::tick])".to_owned();
        assert!(unused(&[one, other]).is_empty());
    }

    #[test]
    fn sub_handlers_and_collected_modules_are_left_alone() {
        let text = "#[kopf::on::subhandler]\nasync fn part() {}\n".to_owned();
        assert!(unused(&[text]).is_empty());
        let text =
            "#[kopf::handlers]\nmod all {\n#[kopf::on::create(Thing)]\nfn a() {}\n}\n".to_owned();
        assert!(unused(&[text]).is_empty());
    }
}
