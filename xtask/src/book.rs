//! `cargo xtask book`: checks the book, draws its diagrams, and renders it with mdBook.
//!
//! `links` and `blocks` check links and code blocks, `diagrams` draws diagrams. mdBook is installed
//! once from crates.io, into the cache folder that all clones share.

mod blocks;
mod diagrams;
mod index;
mod links;
mod messages;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::steps::{cache, command_step, root};

/// The renderer, and the version for which the book is written.
const RENDERER: &str = "mdbook";
const RENDERER_VERSION: &str = "0.5.4";

/// The arguments of `cargo xtask book`.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Check only; render nothing
    #[arg(long)]
    check: bool,
    /// Draw the diagrams again
    #[arg(long)]
    draw: bool,
    /// Fail if mdBook cannot be installed, instead of skipping the rendering
    #[arg(long)]
    strict: bool,
}

/// Checks, and renders into `target/book`.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    println!("── book: links, code blocks, diagrams");
    let pages = pages(&root().join("docs/src"))?;
    if arguments.draw {
        diagrams::draw(&root())?;
    }
    let tested = std::fs::read_to_string(root().join("crates/kopf/src/book.rs"))?;
    let mut complaints = links::check(&pages, &root().join("docs/src"));
    complaints.extend(blocks::check(&pages, &tested));
    complaints.extend(diagrams::check(&root())?);
    let page = pages.get(messages::PAGE).context("there is no page about troubleshooting")?;
    complaints.extend(messages::check(page, &root())?);
    for complaint in &complaints {
        println!("{complaint}");
    }
    ensure!(complaints.is_empty(), "the book has {} problems", complaints.len());
    if arguments.check {
        return Ok(());
    }
    render(&pages, arguments.strict)
}

/// The texts of all pages, by their paths below the folder.
fn pages(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).with_context(|| next.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.strip_prefix(folder)?.display().to_string();
                pages.insert(name, std::fs::read_to_string(&path)?);
            }
        }
    }
    Ok(pages)
}

fn render(pages: &BTreeMap<String, String>, is_strict: bool) -> Result<()> {
    let renderer = match installed() {
        Ok(renderer) => renderer,
        Err(error) if is_strict => return Err(error),
        Err(error) => {
            println!("── book: rendering SKIPPED, mdBook could not be installed: {error:#}");
            return Ok(());
        }
    };
    let destination = crate::cluster::target().join("book");
    let mut command = Command::new(renderer);
    command.arg("build").arg("--dest-dir").arg(&destination).arg(root().join("docs"));
    command_step("book: mdbook build", command)?;
    ensure!(destination.join("index.html").is_file(), "mdBook has written no index.html");
    std::fs::write(destination.join("llms.txt"), index::text(pages))?;
    println!("── book: {}", destination.join("index.html").display());
    Ok(())
}

/// The renderer; installed first if necessary.
fn installed() -> Result<PathBuf> {
    let folder = cache()?.join(format!("{RENDERER}-{RENDERER_VERSION}"));
    let renderer = folder.join("bin").join(RENDERER);
    if renderer.is_file() {
        return Ok(renderer);
    }
    println!("── book: installing {RENDERER} {RENDERER_VERSION}, once (a minute or two)");
    // Without optimization: it renders the book in a second either way.
    let status = Command::new("cargo")
        .args([
            "install",
            RENDERER,
            "--version",
            RENDERER_VERSION,
            "--locked",
            "--debug",
            "--quiet",
        ])
        .args(["--no-default-features", "--features", "search", "--root"])
        .arg(&folder)
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .status()
        .context("could not run cargo")?;
    if !status.success() {
        bail!("`cargo install {RENDERER}` failed ({status})");
    }
    Ok(renderer)
}
