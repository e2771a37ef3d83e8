//! Checks the programs that developers use besides `kopf`.

use std::process::Command;

use super::Finding;

/// The oldest Rust that compiles the framework.
const RUST_MIN: (u32, u32) = (1, 90);

/// Checks the programs.
pub(super) fn check() -> Vec<Finding> {
    vec![rust(version("rustc", "--version")), kubectl(version("kubectl", "version"))]
}

fn version(program: &str, argument: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.arg(argument);
    if program == "kubectl" {
        command.arg("--client");
    }
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// Parses a version such as `rustc 1.95.0 (59807616e 2026-04-14)`.
fn rust(found: Option<String>) -> Finding {
    let Some(text) = found else {
        return Finding::note(
            "rust",
            "there is no `rustc`",
            "install Rust to build operators in Rust; operators in Python do not need it",
        );
    };
    let number = text.split(' ').nth(1).unwrap_or_default();
    let mut parts = number.split('.').map_while(|part| part.parse().ok());
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if found < RUST_MIN {
        let (major, minor) = RUST_MIN;
        let hint = format!("update Rust to {major}.{minor} or newer: `rustup update`");
        return Finding::wrong("rust", format!("{text} is too old"), hint);
    }
    Finding::ok("rust", text)
}

fn kubectl(found: Option<String>) -> Finding {
    match found {
        Some(text) => Finding::ok("kubectl", text),
        None => Finding::note(
            "kubectl",
            "there is no `kubectl`",
            "install it to look at objects; operators do not need it",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{kubectl, rust};
    use crate::command::doctor::Verdict;

    #[test]
    fn an_old_compiler_is_wrong_and_a_missing_one_is_a_note() {
        assert_eq!(rust(Some("rustc 1.95.0 (59807616e)".into())).verdict, Verdict::Ok);
        assert_eq!(rust(Some("rustc 1.70.0 (90c541806)".into())).verdict, Verdict::Wrong);
        assert_eq!(rust(None).verdict, Verdict::Note);
        assert_eq!(kubectl(None).verdict, Verdict::Note);
    }
}
