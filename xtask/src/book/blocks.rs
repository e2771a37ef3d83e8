//! Code blocks: each is compiled, run or parsed by a test, or states why not.

use std::collections::BTreeMap;

/// Languages whose blocks are not checked: terminals, logs, and files of other tools.
const SHOWN: [&str; 7] = ["console", "text", "sh", "dockerfile", "promql", "diff", "http"];

/// All problems with code blocks; `tested` is the list of pages whose Rust is compiled.
pub(super) fn check(pages: &BTreeMap<String, String>, tested: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, text) in pages {
        for Block { line, language, code } in blocks(text) {
            if let Some(problem) = problem(name, language, &code, tested) {
                complaints.push(format!("docs/src/{name}:{line}: {problem}"));
            }
        }
    }
    complaints
}

struct Block<'a> {
    line: usize,
    language: &'a str,
    code: String,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block<'_>> = Vec::new();
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        match line.trim_start().strip_prefix("```") {
            Some(_) if is_open => is_open = false,
            Some(language) => {
                is_open = true;
                let code = String::new();
                found.push(Block { line: index + 1, language: language.trim(), code });
            }
            None if is_open => {
                let block = found.last_mut();
                block.into_iter().for_each(|block| block.code.extend([line, "\n"]));
            }
            None => {}
        }
    }
    found
}

fn problem(page: &str, language: &str, code: &str, tested: &str) -> Option<String> {
    let (language, options) = language.split_once(',').unwrap_or((language, ""));
    match language {
        // Included files are compiled where they are; programs exist only in integration tests.
        "rust" if options.contains("ignore") => {
            let is_elsewhere = code.contains("{{#include") || code.contains("CARGO_BIN_EXE_");
            (!is_elsewhere).then(|| "Rust that is not compiled: remove `ignore`".to_owned())
        }
        "rust" => {
            let is_tested = tested.contains(&format!("\"{page}\""))
                || tested.contains(&format!("docs/src/{page}\""));
            (!is_tested).then(|| "Rust that is not compiled: add the page to book.rs".to_owned())
        }
        // See python/tests/test_docs.py. Pages about the cluster are for other libraries, and
        // included files are tested where they are.
        "python" => {
            let is_elsewhere = page.starts_with("cluster/") || code.contains("{{#include");
            let is_run = is_elsewhere || code.contains("import kopf");
            (!is_run).then(|| "Python that is not run: it has no `import kopf`".to_owned())
        }
        "yaml" => parse_yaml(code).err(),
        "json" => serde_json::from_str::<serde_json::Value>(code)
            .err()
            .map(|error| format!("JSON that cannot be parsed: {error}")),
        "toml" | "" if code.is_empty() => Some("an empty block".to_owned()),
        "toml" => None,
        shown if SHOWN.contains(&shown) => None,
        other => Some(format!("`{other}` is not a language of the book")),
    }
}

fn parse_yaml(code: &str) -> Result<(), String> {
    for document in serde_norway::Deserializer::from_str(code) {
        <serde_json::Value as serde::Deserialize>::deserialize(document)
            .map_err(|error| format!("YAML that cannot be parsed: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
