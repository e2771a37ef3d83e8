//! Limits the size of types: the fields of a struct, and the files with its methods.
//!
//! A struct with many fields usually has several purposes, and a type whose methods are in many
//! files is hard to understand. Works on lines, since the code is formatted.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::is_test;

/// The maximum number of fields of a struct in the engine's crates.
const FIELDS_MAX: usize = 12;
/// The maximum number of files with methods of one type.
const FILES_MAX: usize = 3;
/// The engine's crates.
const ENGINE: [&str; 7] = [
    "kopf-model",
    "kopf-core",
    "kopf-client",
    "kopf-engine",
    "kopf-handler",
    "kopf-testing",
    "kopf",
];

/// Structs that may have more fields: plain values for users or the wire.
const PLAIN_DATA: [(&str, &str, &str); 6] = [
    ("kopf-core", "Settings", "one field per group of settings"),
    ("kopf-core", "Posting", "settings, under Kopf's names"),
    ("kopf-core", "Watching", "settings, under Kopf's names"),
    ("kopf-client", "ConnectionInfo", "what login handlers return, as Kopf defines it"),
    ("kopf-engine", "StatusReport", "the JSON of the debug endpoint"),
    ("kopf", "RunArguments", "one field per option of the command line"),
];

/// Types whose methods may be in more files.
const SPREAD: [(&str, &str, &str); 1] =
    [("kopf-apiserver", "Server", "listeners, manifests and services are ways into one server")];

/// Problems of all crates below `crates/`; `files` are paths with their texts.
pub(super) fn check(files: &[(String, String)]) -> Vec<String> {
    let own = || {
        files.iter().filter_map(|(path, text)| {
            let (name, rest) = path.strip_prefix("crates/")?.split_once('/')?;
            let file = rest.strip_prefix("src/")?.strip_suffix(".rs")?;
            (!is_test(&format!("{file}.rs"))).then_some((name, file, text.as_str()))
        })
    };
    let mut complaints = Vec::new();
    for (name, file, text) in own().filter(|(name, ..)| ENGINE.contains(name)) {
        for (line, of, fields) in structs(text) {
            if fields > FIELDS_MAX && !is_listed(&PLAIN_DATA, name, of) {
                complaints.push(format!(
                    "crates/{name}/src/{file}.rs:{line}: `{of}` has {fields} fields, at most {FIELDS_MAX} are allowed"
                ));
            }
        }
    }
    for ((name, of), places) in homes(own().collect()) {
        if places.len() > FILES_MAX && !is_listed(&SPREAD, &name, &of) {
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            complaints.push(format!(
                "crates/{name}: the methods of `{of}` are in more than {FILES_MAX} files: {}",
                places.join(", ")
            ));
        }
    }
    complaints
}

fn is_listed(list: &[(&str, &str, &str)], name: &str, of: &str) -> bool {
    list.iter().any(|(listed, listed_type, _)| (*listed, *listed_type) == (name, of))
}

/// The structs of a file: their lines, names and numbers of fields.
fn structs(text: &str) -> Vec<(usize, &str, usize)> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(name) = declared(line) else { continue };
        let mut is_open = line.ends_with('{');
        let mut fields = 0;
        if line.ends_with(';') || line.ends_with('}') {
            continue;
        }
        for (_, line) in lines.by_ref() {
            match line {
                "}" | ");" => break,
                _ if is_open => fields += usize::from(is_field(line)),
                _ => is_open = line.ends_with('{'),
            }
        }
        found.push((number + 1, name, fields));
    }
    found
}

/// The name of the struct that starts on a line.
fn declared(line: &str) -> Option<&str> {
    let rest = without_visibility(line);
    name_of(rest.strip_prefix("struct ")?)
}

fn without_visibility(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else { return line };
    match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map_or("", |(_, rest)| rest.trim_start()),
        None => rest.trim_start(),
    }
}

fn is_field(line: &str) -> bool {
    let Some(field) = line.strip_prefix("    ").filter(|rest| !rest.starts_with(' ')) else {
        return false;
    };
    let field = without_visibility(field);
    let name = name_of(field.trim_start_matches("r#")).unwrap_or_default();
    !name.is_empty() && field.trim_start_matches("r#")[name.len()..].starts_with(':')
}

fn name_of(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    (end > 0).then(|| &text[..end])
}

/// A type: the crate and the name.
type Named = (String, String);

/// The files with methods of each type; types with the same name are distinguished by their
/// location.
fn homes(files: Vec<(&str, &str, &str)>) -> Vec<(Named, BTreeSet<String>)> {
    let mut declared_in: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (name, file, text) in &files {
        for of in text.lines().filter_map(|line| declared(line).or_else(|| variant_type(line))) {
            declared_in.entry((name, of)).or_default().push(file);
        }
    }
    let mut found: BTreeMap<(&str, &str, &str), BTreeSet<String>> = BTreeMap::new();
    for (name, file, text) in &files {
        for of in text.lines().filter_map(implemented) {
            // Methods of foreign types belong to traits.
            let Some(places) = declared_in.get(&(*name, of)) else { continue };
            let is_above =
                |place: &&&str| *place == file || file.starts_with(&format!("{}/", **place));
            let nearest = places.iter().filter(is_above).max_by_key(|place| place.len());
            let home = nearest.or(places.first()).copied().unwrap_or_default();
            found.entry((name, of, home)).or_default().insert(format!("src/{file}.rs"));
        }
    }
    let named = |((name, of, _), places): ((&str, &str, &str), BTreeSet<String>)| {
        ((name.to_owned(), of.to_owned()), places)
    };
    found.into_iter().map(named).collect()
}

/// The name of the enum that starts on a line.
fn variant_type(line: &str) -> Option<&str> {
    name_of(without_visibility(line).strip_prefix("enum ")?)
}

/// The type whose inherent methods start on a line.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    if line.contains(" for ") {
        return None;
    }
    name_of(after_parameters(rest)?.trim_start())
}

/// The text after the parameters in angle brackets, if there are any.
fn after_parameters(text: &str) -> Option<&str> {
    if !text.starts_with('<') {
        return text.starts_with(' ').then_some(text);
    }
    let mut depth = 0_u32;
    for (at, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            // Not the end of an arrow.
            '>' if !text[..at].ends_with(['-', '=']) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[at + 1..]);
        }
    }
    None
}

#[cfg(test)]
mod tests;
