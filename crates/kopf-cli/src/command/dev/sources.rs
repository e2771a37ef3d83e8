//! Watches the sources of a project: its own and those of its path dependencies.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc;

use super::session::News;

/// Files next to the sources that affect a build.
const BUILD_FILES: [&str; 2] = ["Cargo.toml", "build.rs"];

/// Watches until it is dropped.
pub(super) struct Sources {
    _watcher: RecommendedWatcher,
}

impl Sources {
    /// Watches the `src` folders and the build files of these packages.
    pub(super) fn watch(roots: &[PathBuf], news: mpsc::UnboundedSender<News>) -> Result<Self> {
        let tell = move |event: notify::Result<Event>| {
            let Ok(event) = event else { return };
            let is_change = !matches!(event.kind, EventKind::Access(_));
            // The last path of a rename is the new name.
            let mut paths = event.paths.iter().rev();
            let Some(path) = paths.find(|path| is_source(path)) else { return };
            if is_change {
                // The session may be over already.
                let _ = news.send(News::Changed { path: path.clone(), at: Instant::now() });
            }
        };
        let mut watcher = notify::recommended_watcher(tell).context("could not watch files")?;
        for root in roots {
            let mut watch = |path: &Path, mode| {
                watcher
                    .watch(path, mode)
                    .with_context(|| format!("could not watch `{}`", path.display()))
            };
            watch(root, RecursiveMode::NonRecursive)?;
            if root.join("src").is_dir() {
                watch(&root.join("src"), RecursiveMode::Recursive)?;
            }
        }
        Ok(Self { _watcher: watcher })
    }
}

/// Whether a file affects the build; editors create temporary files next to it while they save.
fn is_source(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let is_hidden = name.starts_with('.') || name.ends_with('~') || name.ends_with(".swp");
    let is_below = path.components().any(|part| part.as_os_str() == "src");
    // Vim creates a file with this name to test write access.
    let is_probe = name == "4913";
    !is_hidden && !is_probe && (is_below || BUILD_FILES.contains(&name)) && name != "src"
}

#[cfg(test)]
mod tests;
