//! Removes what `cargo run` adds to the environment of a tool, so that Cargo commands started by
//! the tool see the same environment as those started by a user.
//!
//! Build scripts such as that of `ring` declare that they depend on `CARGO_PKG_*` and
//! `CARGO_MANIFEST_*`. Cargo would otherwise recompile them, and everything above them, whenever
//! `cargo test` and `cargo xtask` are used in turns.

use std::ffi::{OsStr, OsString};

use anyhow::Result;

/// The beginnings of the names that describe the running package.
const OF_THE_PACKAGE: [&str; 3] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];

/// Replaces this process by the same program without the variables of `cargo run`. Must be called
/// first; returns if there are no such variables.
#[cfg(unix)]
pub fn leave_cargo() -> Result<()> {
    use std::os::unix::process::CommandExt as _;

    let added = added_by_cargo(std::env::vars_os().map(|(name, _)| name));
    if added.is_empty() {
        return Ok(());
    }
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1));
    for name in added {
        command.env_remove(name);
    }
    Err(command.exec().into())
}

/// Other systems cannot replace a process.
#[cfg(not(unix))]
pub fn leave_cargo() -> Result<()> {
    Ok(())
}

/// Those of the names that `cargo run` sets for the program that it runs.
fn added_by_cargo(names: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_added = |name: &OsStr| {
        let name = name.to_string_lossy();
        OF_THE_PACKAGE.iter().any(|beginning| name.starts_with(beginning))
    };
    names.filter(|name| is_added(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_description_of_the_package_is_removed() {
        let names = ["PATH", "CARGO", "CARGO_HOME", "CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"];
        let removed = added_by_cargo(names.map(OsString::from).into_iter());
        assert_eq!(removed, ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR"]);
    }
}
