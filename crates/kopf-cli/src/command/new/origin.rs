//! The source of the `kopf` crate for a new project: the same as that of this command.
//!
//! `cargo install` records the source of every installed program, next to the folder of the
//! programs. A command that was not installed runs in its checkout.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The record of `cargo install`, in the folder above the programs.
const INSTALLED: &str = ".crates2.json";
/// Our own package.
const PACKAGE: &str = "kopf-cli";

/// A source of the `kopf` crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A folder on this machine: the crate in a checkout.
    Folder(PathBuf),
    /// A repository and a commit.
    Repository {
        /// The URL.
        url: String,
        /// The commit; the newest one if `None`.
        revision: Option<String>,
    },
    /// The crate registry.
    Registry,
}

impl Origin {
    /// The source of this command.
    pub(super) fn of_this_command() -> Self {
        let installed = std::env::current_exe().ok().and_then(|program| {
            let list = program.parent()?.parent()?.join(INSTALLED);
            Self::installed(&std::fs::read_to_string(list).ok()?)
        });
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(|it| it.join("kopf"));
        let checkout = beside.filter(|folder| folder.join("Cargo.toml").is_file());
        installed.or_else(|| checkout.map(Self::Folder)).unwrap_or(Self::Registry)
    }

    /// The source of our package in cargo's list of installed packages.
    fn installed(list: &str) -> Option<Self> {
        let list: Value = serde_json::from_str(list).ok()?;
        // For example `kopf-cli 0.1.0 (git+https://host/kopf?branch=main#0123abc)`.
        let is_ours = |name: &&String| name.split(' ').next() == Some(PACKAGE);
        let ours = list["installs"].as_object()?.keys().find(is_ours)?;
        let source = ours.split_once('(')?.1.trim_end_matches(')');
        if let Some(repository) = source.strip_prefix("git+") {
            let (url, revision) = repository.split_once('#').unwrap_or((repository, ""));
            let url = url.split('?').next().unwrap_or(url).to_owned();
            let revision = (!revision.is_empty()).then(|| revision.to_owned());
            return Some(Self::Repository { url, revision });
        }
        if let Some(folder) = source.strip_prefix("path+file://") {
            let folder = Path::new(folder.split('#').next().unwrap_or(folder));
            let beside = folder.parent()?.join("kopf");
            return beside.join("Cargo.toml").is_file().then_some(Self::Folder(beside));
        }
        Some(Self::Registry)
    }

    /// The dependency as an inline table in a Cargo.toml, without the braces.
    pub(super) fn dependency(&self) -> String {
        match self {
            Self::Folder(path) => format!("path = {:?}", path.display().to_string()),
            Self::Repository { url, revision: Some(revision) } => {
                format!("git = {url:?}, rev = {revision:?}")
            }
            Self::Repository { url, revision: None } => format!("git = {url:?}"),
            Self::Registry => format!("version = {:?}", env!("CARGO_PKG_VERSION")),
        }
    }

    /// The folder that an image build needs besides the project.
    pub(super) fn checkout(&self) -> Option<&Path> {
        match self {
            Self::Folder(path) => path.parent()?.parent(),
            Self::Repository { .. } | Self::Registry => None,
        }
    }
}

#[cfg(test)]
mod tests;
