//! The output formats for data that programs may read.

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::Failure;

#[derive(Args)]
pub(super) struct OutputArguments {
    /// How to show it
    #[arg(long, short, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
    /// The same as `--output json`
    #[arg(long, hide = true, conflicts_with = "output")]
    json: bool,
}

/// An output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// One YAML document.
    #[cfg(feature = "embedded")]
    Yaml,
}

impl OutputArguments {
    /// The text of a document; `None` for the table, which is for users.
    pub(super) fn text(&self, document: impl FnOnce() -> Value) -> Result<Option<String>, Failure> {
        let output = if self.json { Output::Json } else { self.output };
        Ok(match output {
            Output::Table => None,
            Output::Json => Some(format!("{:#}\n", document())),
            #[cfg(feature = "embedded")]
            Output::Yaml => Some(kopf_cli::manifests::to_yaml(&[document()])?),
        })
    }
}
