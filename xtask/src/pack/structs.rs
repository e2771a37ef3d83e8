//! The Go structs that error messages print, written down by `xtask/structs`.
//!
//! Responsible for running that program with the pinned modules of `xtask/kube`, in a copy, since
//! the pins there name no module that only this program imports.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Rewrites the structs that `kopf-kinds` knows.
pub(super) fn write() -> anyhow::Result<()> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::temp_dir().join(format!("kopf-structs-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    for file in ["kube/go.mod", "kube/go.sum", "structs/main.go"] {
        let name = file.rsplit('/').next().unwrap_or(file);
        fs::copy(home.join(file), folder.join(name))?;
    }
    let output = Command::new("go")
        .args(["run", "."])
        .current_dir(&folder)
        .envs([("GOTOOLCHAIN", "local"), ("GOFLAGS", "-mod=mod"), ("CGO_ENABLED", "0")])
        .output()
        .context("could not run `go`")?;
    fs::remove_dir_all(&folder)?;
    if !output.status.success() {
        bail!("xtask/structs: {}", String::from_utf8_lossy(&output.stderr));
    }
    println!("go-structs.txt: {} bytes", output.stdout.len());
    Ok(fs::write(home.join("../crates/kopf-kinds/src/go-structs.txt"), output.stdout)?)
}
