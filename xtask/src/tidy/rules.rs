//! The rules themselves: functions from a file's path and text to problems.

/// The maximum number of lines of a product file, without its tests.
const FILE_LINES_MAX: usize = 700;
/// The maximum number of columns; rustfmt limits code to 100, comments may be slightly longer.
const COLUMNS_MAX: usize = 110;
/// Crates that may use `anyhow`: those with a user interface.
const ANYHOW_ALLOWED: [&str; 4] = ["benches/", "crates/kopf-cli/", "tools/", "xtask/"];

/// All problems of one file.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let mut complaints = machine_paths(path, text);
    if is_rust(path) {
        complaints.extend(rust_file(path, text));
        complaints.extend(rust_lines(path, text));
    } else if path.ends_with("Cargo.toml") && path != "Cargo.toml" {
        complaints.extend(manifest(path, text));
    }
    complaints
}

/// Generated files and the intentionally wrong programs of the compile-fail suites are not checked.
fn is_rust(path: &str) -> bool {
    path.ends_with(".rs") && !path.contains("/compile-fail/") && !path.contains("/templates/")
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs")
}

fn rust_file(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if path.ends_with("/mod.rs") {
        complaints.push(format!("{path}: use `x.rs` beside `x/` instead of `mod.rs`"));
    }
    // Unit tests next to the file that they test need no header.
    if !path.ends_with("/tests.rs") && !text.trim_start().starts_with("//!") {
        complaints.push(format!("{path}:1: the file does not open with a `//!` header"));
    }
    let lines = text.lines().count();
    if !is_test(path) && lines > FILE_LINES_MAX {
        complaints.push(format!("{path}: {lines} lines, at most {FILE_LINES_MAX} are allowed"));
    }
    complaints
}

fn rust_lines(path: &str, text: &str) -> Vec<String> {
    // Split, so that this file does not contain the word itself.
    let fixme = concat!("FIX", "ME");
    let todo = concat!("TO", "DO");
    let allow = concat!("#[", "allow(");
    let mut complaints = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let mut complain = |rule: &str| complaints.push(format!("{path}:{number}: {rule}"));
        // Error messages in test screens may have any length.
        let is_screen = is_test(path) && line.trim_start().starts_with("caused by: ");
        let is_text = line.contains("http") || line.contains('"') || is_screen;
        let is_breakable = !is_text && !is_emitted(path);
        if line.chars().count() > COLUMNS_MAX && is_breakable {
            complain("the line is over 110 columns");
        }
        if line.contains(fixme) {
            complain("fix it before it lands");
        }
        if line.contains(&format!("// {todo}")) && !line.contains(&format!("{todo}(#")) {
            complain("a reminder needs its issue number");
        }
        // The macros generate attributes for user code, where an expectation may not hold.
        if line.trim_start().starts_with(allow) && !is_emitted(path) {
            complain("use `#[expect(lint, reason = \"...\")]`");
        }
        let is_comment = line.trim_start().starts_with("//");
        let anyhow = !is_comment && (line.starts_with("use anyhow") || line.contains("anyhow::"));
        if anyhow && !ANYHOW_ALLOWED.iter().any(|prefix| path.starts_with(prefix)) {
            complain("`anyhow` is for kopf-cli and tools only");
        }
    }
    complaints
}

/// Code inside `quote!` is not formatted automatically.
fn is_emitted(path: &str) -> bool {
    path.starts_with("crates/kopf-macros/")
}

fn manifest(path: &str, text: &str) -> Vec<String> {
    let versioned = |line: &str| {
        let Some((name, value)) = line.split_once('=') else { return false };
        let (name, value) = (name.trim(), value.trim());
        let is_dependency = !matches!(name, "version" | "edition" | "rust-version" | "name");
        is_dependency && value.starts_with(['"', '{']) && has_version(value)
    };
    let mut in_dependencies = false;
    let mut complaints = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            in_dependencies = line.contains("dependencies");
        } else if in_dependencies && versioned(line) {
            let number = index + 1;
            complaints.push(format!("{path}:{number}: versions belong into the root manifest"));
        }
    }
    complaints
}

fn has_version(value: &str) -> bool {
    value.strip_prefix('"').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        || value.contains("version =")
}

fn machine_paths(path: &str, text: &str) -> Vec<String> {
    let roots = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/fa", "rm/")];
    let mut complaints = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for root in roots {
            let Some(position) = line.find(root) else { continue };
            let before = line[..position].chars().next_back();
            let inside_a_path = before.is_some_and(|c| c.is_alphanumeric() || "_./-}".contains(c));
            if !inside_a_path {
                complaints.push(format!("{path}:{}: a path of one machine", index + 1));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests;
