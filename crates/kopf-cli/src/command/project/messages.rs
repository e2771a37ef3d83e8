//! The JSON messages that cargo prints while it builds.
//!
//! Pure: parses lines and returns the program, or the relevant errors.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::{BuildError, Built};

/// A compiler error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diagnostic {
    /// File, line and column; `None` for errors without a location.
    pub(crate) place: Option<String>,
    /// What is wrong.
    pub(crate) message: String,
    /// The compiler's label at the location.
    pub(crate) label: Option<String>,
    /// The error code, such as `E0308`.
    pub(crate) code: Option<String>,
}

/// The meaning of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A crate was compiled.
    Compiled(String),
    /// Nothing of interest.
    Other,
}

/// All messages so far.
pub(super) struct Messages {
    bin: String,
    /// The number of compiled crates.
    pub(super) compiled: usize,
    built: Option<Built>,
    diagnostics: Vec<Diagnostic>,
}

#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Line {
    CompilerArtifact {
        target: Target,
        fresh: bool,
        executable: Option<PathBuf>,
    },
    CompilerMessage {
        message: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Messages {
    pub(super) fn new(bin: &str) -> Self {
        Self { bin: bin.to_owned(), compiled: 0, built: None, diagnostics: Vec::new() }
    }

    /// Processes one line.
    pub(super) fn read(&mut self, line: &str) -> Message {
        match serde_json::from_str(line) {
            Ok(Line::CompilerArtifact { target, fresh, executable }) => {
                let is_bin = target.kind.iter().any(|kind| kind == "bin");
                if let Some(executable) = executable
                    && is_bin
                    && target.name == self.bin
                {
                    self.built = Some(Built { executable, is_fresh: fresh });
                }
                if fresh {
                    return Message::Other;
                }
                self.compiled += 1;
                Message::Compiled(target.name)
            }
            Ok(Line::CompilerMessage { message }) => {
                self.diagnostics.extend(diagnostic(&message));
                Message::Other
            }
            // Other programs in the build may print anything.
            Ok(Line::Other) | Err(_) => Message::Other,
        }
    }

    /// The result of the build.
    pub(super) fn conclude(self, is_success: bool, stderr: &str) -> Result<Built, BuildError> {
        match (is_success, self.built) {
            (true, Some(built)) => Ok(built),
            (true, None) => {
                Err(BuildError::Cargo(format!("cargo did not build the program `{}`", self.bin)))
            }
            (false, _) if self.diagnostics.is_empty() => Err(BuildError::Cargo(essence(stderr))),
            (false, _) => Err(BuildError::Diagnostics(self.diagnostics)),
        }
    }
}

fn diagnostic(message: &Value) -> Option<Diagnostic> {
    let text = message["message"].as_str()?;
    if message["level"] != "error" || text.starts_with("aborting due to") {
        return None;
    }
    let spans = message["spans"].as_array();
    let span = spans.into_iter().flatten().find(|span| span["is_primary"] == true);
    let place = span.map(|span| {
        let file = span["file_name"].as_str().unwrap_or_default();
        format!("{file}:{}:{}", span["line_start"], span["column_start"])
    });
    let owned = |value: &Value| value.as_str().map(str::to_owned);
    Some(Diagnostic {
        place,
        message: text.lines().next().unwrap_or_default().to_owned(),
        label: span.and_then(|span| owned(&span["label"])),
        code: owned(&message["code"]["code"]),
    })
}

/// The error message of cargo, without its progress output.
fn essence(stderr: &str) -> String {
    let start = stderr.find("error: ").unwrap_or(0);
    stderr[start..].trim().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests;
