//! Checks the operator in the current folder: whether there is one, and whether all its handlers
//! are used.

use super::Finding;
use crate::command::project::unused_handlers;

/// Checks the project in the current folder.
pub(super) fn check() -> Vec<Finding> {
    let Ok(here) = std::env::current_dir() else { return Vec::new() };
    let Some(root) = here.ancestors().find(|folder| folder.join("Cargo.toml").is_file()) else {
        let hint = "go to the folder of an operator, or create one with `kopf new`";
        return vec![Finding::note("project", "there is no cargo project here", hint)];
    };
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    if !manifest.lines().any(|line| line.trim_start().starts_with("kopf")) {
        let text = format!("`{}` does not use the crate `kopf`", root.display());
        return vec![Finding::note("project", text, "add it to the dependencies")];
    }
    let mut findings = vec![Finding::ok("project", root.display().to_string())];
    let unused = unused_handlers(root);
    findings.extend(unused.iter().map(|name| {
        let text = format!("the handler `{name}` is never called");
        Finding::wrong(
            "handlers",
            text,
            format!("add it to the list: `kopf::operator!(.., [{name}])`"),
        )
    }));
    if unused.is_empty() {
        findings.push(Finding::ok("handlers", "all handlers of the sources are in an operator"));
    }
    findings
}
