//! `cargo xtask ui`: builds the pages of the web UI, checks that the committed ones are up to date,
//! tests them in a browser with a real operator, and takes the pictures of the book.
//!
//! Needs Node and npm; the tests also need Chromium. Building the workspace needs neither.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::build;
use crate::cluster::target;
use crate::steps::{command_step, root};

/// The files that the build creates.
const BUILT: [&str; 4] = ["app.css", "app.js", "icon.svg", "index.html"];
/// Their maximum total compressed size, in bytes.
const COMPRESSED_MAX: usize = 200_000;
/// The usual paths of Chromium.
const BROWSERS: [&str; 4] = [
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/// The arguments of `cargo xtask ui`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Check that the committed pages are the build of their sources
    #[arg(long, conflicts_with_all = ["test", "pictures"])]
    check: bool,
    /// Test the committed pages and the rendered book in Chromium (`CHROMIUM` says where it is)
    #[arg(long)]
    test: bool,
    /// Take the pictures of the README and the book
    #[arg(long)]
    pictures: bool,
}

/// Builds, checks, tests or takes pictures.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    install()?;
    if arguments.check {
        return check();
    }
    if arguments.test || arguments.pictures {
        let browser = browser().context("there is no Chromium; set CHROMIUM to its path")?;
        build_operator()?;
        if arguments.test {
            browse("ui: in the browser", "test/browser.mjs", &browser)?;
            browse_book(&browser)?;
        }
        if arguments.pictures {
            browse("ui: pictures", "test/pictures.mjs", &browser)?;
        }
        return Ok(());
    }
    types()?;
    build(&assets())?;
    weigh()
}

/// Runs the checks of CI, as far as the machine allows.
pub(crate) fn ci() -> Result<()> {
    for program in ["node", "npm"] {
        if Command::new(program).arg("--version").output().is_err() {
            println!("── web UI: SKIPPED, there is no `{program}` on this machine");
            return Ok(());
        }
    }
    install()?;
    check()?;
    let Some(browser) = browser() else {
        println!("── web UI in the browser: SKIPPED, there is no Chromium on this machine");
        return Ok(());
    };
    build_operator()?;
    browse("ui: in the browser", "test/browser.mjs", &browser)?;
    browse_book(&browser)
}

/// Opens all pages of the rendered book.
fn browse_book(browser: &Path) -> Result<()> {
    if !target().join("book/index.html").exists() {
        println!("── book in the browser: SKIPPED, run `cargo xtask book` first");
        return Ok(());
    }
    browse("book: in the browser", "test/book.mjs", browser)
}

fn folder() -> PathBuf {
    root().join("ui")
}

fn assets() -> PathBuf {
    root().join("crates/kopf-ui/assets")
}

fn browser() -> Option<PathBuf> {
    let given = std::env::var_os("CHROMIUM").map(PathBuf::from);
    given.or_else(|| BROWSERS.iter().map(PathBuf::from).find(|path| path.exists()))
}

/// Installs exactly the packages of the lock file, without running their scripts.
fn install() -> Result<()> {
    let mut command = Command::new("npm");
    command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
    command.current_dir(folder());
    command_step("ui: npm ci", command)
}

fn types() -> Result<()> {
    let mut command = Command::new("node");
    command.args(["node_modules/typescript/bin/tsc", "--noEmit"]).current_dir(folder());
    command_step("ui: types", command)
}

fn build(into: &Path) -> Result<()> {
    let mut command = Command::new("node");
    command.arg("build.mjs").arg(into).current_dir(folder());
    command_step("ui: build", command)
}

fn check() -> Result<()> {
    types()?;
    let lock = std::fs::read_to_string(folder().join("package-lock.json"))?;
    ensure!(!lock.contains("\"resolved\""), "`ui/package-lock.json` names registries");
    let staging = std::env::temp_dir().join(format!("kopf-ui-{}", std::process::id()));
    build(&staging)?;
    let differing = BUILT.into_iter().filter(|file| {
        let read = |folder: &Path| std::fs::read(folder.join(file)).ok();
        read(&staging).is_none() || read(&staging) != read(&assets())
    });
    let differing: Vec<&str> = differing.collect();
    std::fs::remove_dir_all(&staging)?;
    ensure!(
        differing.is_empty(),
        "{} in `crates/kopf-ui/assets` are not the build of `ui/`: run `cargo xtask ui`",
        differing.join(", ")
    );
    weigh()
}

fn weigh() -> Result<()> {
    let mut all = Vec::new();
    for file in BUILT {
        let path = assets().join(file);
        all.extend(std::fs::read(&path).with_context(|| path.display().to_string())?);
    }
    let compressed = zstd::encode_all(all.as_slice(), 19)?.len();
    println!("── ui: {} bytes, {compressed} compressed", all.len());
    ensure!(compressed < COMPRESSED_MAX, "the pages are too large: {compressed} bytes");
    Ok(())
}

fn build_operator() -> Result<()> {
    build::packages("ui: the operator", ["example-web-ui", "kopf-cli"])
}

fn browse(name: &str, script: &str, browser: &Path) -> Result<()> {
    let mut command = Command::new("node");
    command
        .arg(script)
        .current_dir(folder())
        .env("CHROMIUM", browser)
        .env("BOOK", target().join("book"))
        .env("OPERATOR", target().join("debug/example-web-ui"))
        .env("KOPF", target().join("debug/kopf"));
    command_step(name, command)
}
