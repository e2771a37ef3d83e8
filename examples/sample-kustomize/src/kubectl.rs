//! The same operator as in the training: it writes a kustomization and calls `kubectl`.
//!
//! Needs `kubectl` next to the program, and credentials that `kubectl` finds by itself. It starts a
//! process per change, and `kubectl` does not set owners, so deletion needs a handler.

use std::io;
use std::path::Path;
use std::process::Command;

use kopf::input::Namespace;
use kopf::prelude::*;

use crate::overlay::Overlay;
use crate::{Sample, SampleStatus, sample_login};

/// Sets the replicas of the Deployment. Plain functions may block.
#[kopf::on::create(Sample, needs = ["get,create,patch deployments.apps"])]
#[kopf::on::update(Sample, field = "spec")]
pub fn kubectl_apply(
    this: &Sample,
    namespace: Namespace,
    status: &mut Status<SampleStatus>,
) -> Result {
    status.message = kubectl(&["apply"], this, &namespace)?;
    Ok(())
}

/// Deletes the Deployment.
#[kopf::on::delete(Sample, needs = ["get,delete deployments.apps"])]
pub fn kubectl_delete(this: &Sample, namespace: Namespace) -> Result {
    kubectl(&["delete", "--ignore-not-found", "--wait=false"], this, &namespace)?;
    Ok(())
}

/// Writes the overlay as a kustomization.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn write(folder: &Path, overlay: &Overlay, namespace: &str) -> io::Result<()> {
    let mut files = overlay.files(namespace).into_iter();
    files.try_for_each(|(name, content)| std::fs::write(folder.join(name), content))
}

/// Every call has its own folder, since Samples are handled concurrently.
fn kubectl(command: &[&str], sample: &Sample, namespace: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    write(folder.path(), &Overlay::of(sample), namespace)?;
    let output = Command::new("kubectl").args(command).arg("-k").arg(folder.path()).output()?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(kopf::temporary(format!("kubectl failed: {}", complaint.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The operator that calls `kubectl`.
pub fn operator() -> kopf::Operator {
    kopf::operator!("sample-kustomize", [sample_login, kubectl_apply, kubectl_delete])
}
