//! Finds cycles between the top-level modules of a crate.
//!
//! A module depends on another one if any of its files names it as `crate::other`, directly or
//! through a re-export of `lib.rs`. Existing cycles are listed in `xtask/cycles.txt`: they may
//! shrink, but not grow.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

/// The dependencies of each top-level module of a crate.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

/// The known cycles.
const KNOWN: &str = "xtask/cycles.txt";

/// Problems with unknown cycles, and with known ones that no longer exist.
pub(super) fn check(root: &Path, files: &[(String, String)]) -> Result<Vec<String>> {
    let known = std::fs::read_to_string(root.join(KNOWN))
        .with_context(|| format!("could not read {KNOWN}"))?;
    let mut real = Vec::new();
    for name in crates(files) {
        real.extend(cycles(&graph(&name, files)).into_iter().map(|group| (name.clone(), group)));
    }
    Ok(compare(&parse(&known), &real))
}

/// The names of the crates below `crates/`.
pub(crate) fn crates(files: &[(String, String)]) -> BTreeSet<String> {
    let names = files.iter().filter_map(|(path, _)| {
        let (name, rest) = path.strip_prefix("crates/")?.split_once('/')?;
        (rest == "src/lib.rs").then(|| name.to_owned())
    });
    names.collect()
}

/// The dependencies between the modules of a crate; `files` are paths with their texts.
pub(crate) fn graph(name: &str, files: &[(String, String)]) -> Graph {
    let prefix = format!("crates/{name}/src/");
    let own = || {
        let files =
            files.iter().filter_map(|(path, text)| Some((path.strip_prefix(&prefix)?, text)));
        files.filter(|(path, _)| !is_test(path))
    };
    let modules = own().filter_map(|(path, _)| module_of(path));
    let mut graph: Graph = modules.map(|module| (module.to_owned(), BTreeSet::new())).collect();
    let library = own().find(|(path, _)| *path == "lib.rs").map(|(_, text)| text.as_str());
    let exports = re_exports(library.unwrap_or_default());
    for (path, text) in own() {
        let Some(module) = module_of(path) else { continue };
        for name in roots(text) {
            let target = if graph.contains_key(&name) { Some(&name) } else { exports.get(&name) };
            let Some(target) = target.filter(|target| *target != module) else { continue };
            if graph.contains_key(target) {
                graph.entry(module.to_owned()).or_default().insert(target.clone());
            }
        }
    }
    graph
}

pub(super) fn is_test(path: &str) -> bool {
    let stem = path.rsplit('/').next().unwrap_or_default();
    path.contains("/tests/") || stem == "tests.rs" || stem.ends_with("_tests.rs")
}

/// The top-level module of a file, given by its path below `src`.
fn module_of(path: &str) -> Option<&str> {
    let first = path.split('/').next()?;
    let module = first.strip_suffix(".rs").unwrap_or(first);
    (!matches!(module, "lib" | "main" | "bin")).then_some(module)
}

/// The first name of every path that starts with `crate::`, including groups.
fn roots(text: &str) -> BTreeSet<String> {
    let code: Vec<&str> =
        text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let mut names = BTreeSet::new();
    for (at, start) in code.match_indices("crate::") {
        let rest = &code[at + start.len()..];
        match rest.strip_prefix('{') {
            Some(group) => names.extend(group_members(group)),
            None => names.extend(identifier(rest)),
        }
    }
    names
}

/// The first names of the members of a group whose opening brace has been read.
fn group_members(group: &str) -> Vec<String> {
    let (mut depth, mut start, mut members) = (1_u32, 0, Vec::new());
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && character == ',') {
            members.extend(identifier(group[start..at].trim_start()));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    members
}

fn identifier(text: &str) -> Option<String> {
    let name: String =
        text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// The module of each name that `lib.rs` re-exports.
fn re_exports(library: &str) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for statement in library.split(';') {
        let Some((_, path)) = statement.split_once("use ") else { continue };
        let path = path.trim().trim_start_matches("crate::").trim_start_matches("self::");
        let Some((module, names)) = path.split_once("::") else { continue };
        for name in names.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            exports.insert(name.to_owned(), module.to_owned());
        }
    }
    exports
}

/// Groups of modules that all depend on each other.
pub(crate) fn cycles(graph: &Graph) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|module| (module, reachable(graph, module))).collect();
    let mut groups: Vec<BTreeSet<String>> = Vec::new();
    for (module, targets) in &reached {
        let is_listed = groups.iter().any(|group| group.contains(*module));
        if !targets.contains(module) || is_listed {
            continue;
        }
        let mutual = targets.iter().filter(|target| reached[**target].contains(module));
        groups.push(mutual.map(|target| (*target).clone()).collect());
    }
    groups
}

fn reachable<'a>(graph: &'a Graph, start: &str) -> BTreeSet<&'a String> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&String> = graph[start].iter().collect();
    while let Some(module) = open.pop() {
        if seen.insert(module) {
            open.extend(&graph[module]);
        }
    }
    seen
}

type Group = (String, BTreeSet<String>);

/// Lines of `crate: module module ...`.
fn parse(text: &str) -> Vec<Group> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let groups = lines.filter_map(|line| line.split_once(':'));
    let modules = |list: &str| list.split_whitespace().map(str::to_owned).collect();
    groups.map(|(name, list)| (name.to_owned(), modules(list))).collect()
}

fn compare(known: &[Group], real: &[Group]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, group) in real {
        let is_within = |(other, allowed): &&Group| other == name && group.is_subset(allowed);
        if known.iter().find(is_within).is_none() {
            let modules: Vec<&str> = group.iter().map(String::as_str).collect();
            complaints.push(format!(
                "{name}: these modules depend on each other in a cycle: {} ({KNOWN} lists the known cycles)",
                modules.join(", ")
            ));
        }
    }
    for group in known.iter().filter(|group| !real.contains(group)) {
        let modules: Vec<&str> = group.1.iter().map(String::as_str).collect();
        complaints.push(format!(
            "{KNOWN}: {} has no cycle of exactly {} any more; update the line",
            group.0,
            modules.join(", ")
        ));
    }
    complaints
}

#[cfg(test)]
mod tests;
