//! The output formats of commands.

use clap::ValueEnum;
use serde_json::Value;

use crate::failure::Failure;

/// A form of output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// One YAML document.
    Yaml,
}

impl Output {
    /// The text of a document; `None` for the human-readable format.
    pub(super) fn text(self, document: &Value) -> Result<Option<String>, Failure> {
        Ok(match self {
            Self::Table => None,
            Self::Json => Some(format!("{document:#}\n")),
            Self::Yaml => Some(serde_norway::to_string(document)?),
        })
    }
}
