//! Bundles for the Operator Lifecycle Manager, checked by the library of the Operator Framework.
//!
//! The program is in `xtask/bundle`; Go builds it once and keeps it in its cache.

use std::process::Command;

use anyhow::Result;

use super::{EXAMPLES, generate, output, tool};
use crate::steps::root;

/// Returns `None` if Go is missing or cannot download the library.
pub(super) fn check() -> Result<Option<()>> {
    if tool("go").is_none() {
        return Ok(None);
    }
    for example in EXAMPLES {
        let folder = generate(example, "olm", &["--secure-metrics"])?;
        let mut command = Command::new("go");
        command.args(["run", "."]).arg(&folder).current_dir(root().join("xtask/bundle"));
        let said = output(command)?;
        println!(
            "── charts: the Operator Framework about the bundle of {example}:\n{}",
            said.trim()
        );
    }
    Ok(Some(()))
}
