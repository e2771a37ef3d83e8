//! Settings of the file that lets an operator restart without listing its objects.

use std::path::PathBuf;
use std::time::Duration;

/// The file that lets an operator restart without listing its objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshots {
    /// The file; none turns snapshots off. Each operator needs its own file.
    /// Changes apply after a restart.
    pub file: Option<PathBuf>,
    /// How often the file is written while the operator runs. It is also written at the end.
    /// Changes apply after a restart.
    pub interval: Duration,
    /// What identifies the storages in `persistence` that are not the built-in ones. Without it, an
    /// operator with such storages does not use snapshots. Changes apply after a restart.
    pub storages: Option<String>,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self { file: None, interval: Duration::from_secs(60), storages: None }
    }
}
