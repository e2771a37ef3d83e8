//! `cargo xtask newcomer`: follows the steps of a newcomer with `kopf new`, up to a handled object.
//!
//! Creates a project in a temporary folder, tests it, runs it with an embedded cluster, creates
//! its example object, and presses Ctrl-C. Compiles offline with the versions of our own lock file.
//! With `--image`, it also follows the Dockerfile (`newcomer::image`).

mod image;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::build;
use crate::cluster::target;
use crate::steps::{command_step, root};

/// How long the object may take to be handled once the operator runs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The project's name.
const NAME: &str = "newcomer";

/// The folders of manifests with their options: for the cluster, for one namespace.
const DEPLOYMENTS: [(&str, &[&str]); 2] =
    [("deploy", &[]), ("narrow", &["--namespace", "operators", "--serves", "team-a"])];

/// The arguments of `cargo xtask newcomer`.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Also build the program of the image, and run it in an empty folder, without Docker
    #[arg(long)]
    image: bool,
}

/// Runs all steps.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    // Not below the repository, since it would have to belong to that workspace.
    let parent = std::env::temp_dir().join(format!("kopf-{}", std::process::id()));
    std::fs::create_dir_all(&parent)?;
    let folder = parent.join(NAME);
    let outcome = walk(&folder, arguments);
    std::fs::remove_dir_all(&parent)?;
    outcome
}

fn walk(folder: &Path, arguments: &Arguments) -> Result<()> {
    build::packages("kopf command", ["kopf-cli"])?;
    let mut new = Command::new(target().join("debug/kopf"));
    new.arg("new").arg(folder).current_dir(root());
    command_step("newcomer: kopf new", new)?;
    std::fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let mut format = cargo(folder);
    format.args(["fmt", "--check"]);
    command_step("newcomer: cargo fmt --check", format)?;
    let mut test = cargo(folder);
    test.args(["test", "--offline", "--quiet"]);
    command_step("newcomer: cargo test", test)?;
    let mut build = cargo(folder);
    build.args(["build", "--offline", "--quiet"]);
    command_step("newcomer: cargo build", build)?;
    check_features(folder)?;
    check_image(folder)?;
    for (output, options) in DEPLOYMENTS {
        let mut manifests = Command::new(target().join("debug/kopf"));
        manifests.args(["manifests", "--image", "you/newcomer:1", "--output", output]);
        manifests.args(options).current_dir(folder).env("CARGO_TARGET_DIR", target());
        command_step(&format!("newcomer: kopf manifests {}", options.join(" ")), manifests)?;
    }
    if arguments.image {
        image::run(folder)?;
    }
    live(folder)
}

/// Checks what the Dockerfile compiles: the same program without the parts for development.
fn check_image(folder: &Path) -> Result<()> {
    let dockerfile = std::fs::read_to_string(folder.join("Dockerfile"))?;
    let build = format!("RUN cargo build --release --no-default-features --bin {NAME}\n");
    ensure!(dockerfile.contains(&build), "the Dockerfile builds something else:\n{dockerfile}");
    let crates = tree(folder, &["--no-default-features", "--edges", "normal,no-proc-macro"])?;
    let has = |name: &str| crates.lines().any(|line| line.split(' ').next() == Some(name));
    ensure!(has("kopf-engine"), "there is no engine in the image:\n{crates}");
    for name in ["kopf-apiserver", "kopf-ui", "kopf-testing"] {
        ensure!(!has(name), "{name} would be in the image");
    }
    println!("── newcomer: the image has no embedded cluster and no web UI");
    Ok(())
}

/// Checks that tests enable no more features of libraries than the program: `cargo run` after
/// `cargo test` compiles only `kopf` and the project again.
fn check_features(folder: &Path) -> Result<()> {
    let features = |edges: &str| -> Result<BTreeSet<String>> {
        let text = tree(folder, &["--edges", edges, "--format", "{p} [{f}]"])?;
        Ok(text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect())
    };
    let (program, tests) = (features("normal,build")?, features("normal,build,dev")?);
    let more: Vec<&String> = program.difference(&tests).collect();
    let is_expected = more.iter().all(|line| line.starts_with("kopf v"));
    ensure!(is_expected, "tests enable more features of these crates: {more:?}");
    println!("── newcomer: the program and its tests share all libraries");
    Ok(())
}

/// The crates of the project, one per line.
fn tree(folder: &Path, arguments: &[&str]) -> Result<String> {
    let mut tree = cargo(folder);
    tree.args(["tree", "--offline", "--prefix", "none"]).args(arguments);
    let output = tree.output().context("could not run cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn cargo(folder: &Path) -> Command {
    let mut command = crate::steps::cargo();
    // Shares compiled dependencies with this repository.
    command.current_dir(folder).env("CARGO_TARGET_DIR", target());
    command
}

/// Runs the operator, creates the example, and checks whether it is handled.
fn live(folder: &Path) -> Result<()> {
    println!("── newcomer: cargo run -- run --embedded");
    let mut command = cargo(folder);
    command.args(["run", "--offline", "--quiet", "--", "run", "--embedded"]);
    let mut process = command.process_group(0).stdout(Stdio::piped()).spawn()?;
    let seen = kubeconfig(&mut process).and_then(|kubeconfig| greet(folder, &kubeconfig));
    let interrupted =
        Command::new("kill").args(["-INT", "--", &format!("-{}", process.id())]).status()?;
    let status = process.wait()?;
    seen?;
    ensure!(interrupted.success() && status.success(), "Ctrl-C did not end it well ({status})");
    println!("── newcomer: the object was handled, and Ctrl-C ended it well");
    Ok(())
}

fn kubeconfig(process: &mut Child) -> Result<PathBuf> {
    let output = process.stdout.take().context("the output was not captured")?;
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let path = lines.find_map(|line| Some(line.split_once("export KUBECONFIG=")?.1.to_owned()));
    // Reads the rest of the output, so that the operator does not block.
    std::thread::spawn(move || lines.for_each(drop));
    Ok(PathBuf::from(path.context("it ended before it printed a kubeconfig")?))
}

fn greet(folder: &Path, kubeconfig: &Path) -> Result<()> {
    if Command::new("kubectl").arg("--help").output().is_err() {
        println!("── newcomer: there is no `kubectl` on this machine, so no object is created");
        return Ok(());
    }
    let kubectl = |arguments: &[&str]| {
        Command::new("kubectl")
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .current_dir(folder)
            .output()
    };
    let succeed = |arguments: &[&str]| {
        let output = kubectl(arguments)?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    };
    succeed(&["apply", "-f", "example.yaml"])?;
    succeed(&["create", "namespace", "team-a"])?;
    for ((output, _), namespace) in DEPLOYMENTS.into_iter().zip(["default", "operators"]) {
        succeed(&["apply", "-k", output])?;
        let deployment = format!("deployment/{NAME}");
        succeed(&["rollout", "status", &deployment, "-n", namespace, "--timeout=30s"])?;
    }
    println!("── newcomer: `kubectl apply -k` works on the manifests");
    wait_until_greeted(|| {
        let shown = kubectl(&["get", "greetings"])?;
        Ok(String::from_utf8_lossy(&shown.stdout).into_owned())
    })
}

/// Waits until the table of greetings has the message of the operator.
fn wait_until_greeted(mut table: impl FnMut() -> Result<String>) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let shown = table()?;
        if shown.contains("Hello, World!") {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("the example was not handled:\n{shown}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
