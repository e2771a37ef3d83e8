//! `cargo xtask newcomer --image`: does what the Dockerfile of a new project says, without Docker.
//!
//! The command of the Dockerfile builds the program, for musl. The last stage of the Dockerfile
//! becomes a folder. In it, the program runs by `chroot` as the user of the image, with a
//! `kopf cluster`. What is not checked: that the base image exists and has a C compiler.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::{Context, Result, bail, ensure};

use super::{cargo, wait_until_greeted};
use crate::cluster::{Cluster, target};
use crate::steps::command_step;

/// Certificates of public authorities, in the base image and on most machines.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// What a Dockerfile says.
#[derive(Debug, PartialEq, Eq)]
struct Image {
    /// The arguments of cargo.
    build: Vec<String>,
    /// The files of the last stage: their paths in the first stage and in the last one.
    copies: Vec<(String, String)>,
    /// The user of the program.
    user: String,
    /// The program and its arguments.
    command: Vec<String>,
}

impl Image {
    /// Reads the instructions that our Dockerfiles have, and no others.
    fn of(dockerfile: &str) -> Result<Self> {
        let (first, last) = dockerfile.split_once("FROM scratch\n").context("no empty stage")?;
        let build = first.lines().find_map(|line| line.strip_prefix("RUN cargo "));
        let build = build.context("nothing is built")?.split(' ').map(str::to_owned).collect();
        let mut image =
            Self { build, copies: Vec::new(), user: String::new(), command: Vec::new() };
        for line in last.lines().filter(|line| !line.is_empty()) {
            let (instruction, rest) = line.split_once(' ').unwrap_or((line, ""));
            let words: Vec<&str> = rest.split(' ').collect();
            match (instruction, words.as_slice()) {
                ("COPY", ["--from=build", from, to]) => {
                    image.copies.push(((*from).to_owned(), (*to).to_owned()));
                }
                ("USER", [user]) => (*user).clone_into(&mut image.user),
                ("ENTRYPOINT" | "CMD", _) => {
                    image.command.extend(serde_json::from_str::<Vec<String>>(rest)?);
                }
                _ => bail!("`{line}` is not known here"),
            }
        }
        Ok(image)
    }
}

/// Builds the program and the root of the image, and runs the program.
pub(super) fn run(project: &Path) -> Result<()> {
    let image = Image::of(&std::fs::read_to_string(project.join("Dockerfile"))?)?;
    let platform = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let mut build = cargo(project);
    build.args(&image.build).args(["--offline", "--target", &platform]);
    command_step(&format!("newcomer: cargo {} for musl", image.build.join(" ")), build)?;
    let root = project.join("image");
    fill(&root, &image, &target().join(platform))?;
    let cluster = Cluster::start("dev")?;
    let kubeconfig = root.join("kubeconfig");
    std::fs::copy(&cluster.kubeconfig, &kubeconfig)?;
    std::fs::set_permissions(&kubeconfig, std::fs::Permissions::from_mode(0o644))?;
    kubectl(project, &kubeconfig, &["apply", "-f", "deploy/crds.yaml"])?;
    kubectl(project, &kubeconfig, &["apply", "-f", "example.yaml"])?;
    let mut operator = start(&root, &image)?;
    let seen = wait_until_greeted(|| {
        ensure!(operator.try_wait()?.is_none(), "the program of the image has ended");
        kubectl(project, &kubeconfig, &["get", "greetings"])
    });
    Command::new("kill").arg(operator.id().to_string()).status()?;
    let status = operator.wait()?;
    seen?;
    ensure!(status.success(), "SIGTERM did not end the program of the image well ({status})");
    println!("── newcomer: the program of the image runs in an empty folder as {}", image.user);
    Ok(())
}

/// Copies into the root what the last stage of the Dockerfile copies.
fn fill(root: &Path, image: &Image, built: &Path) -> Result<()> {
    let mut size = 0;
    for (from, to) in &image.copies {
        let source = match from.strip_prefix("/src/target/") {
            Some(file) => built.join(file),
            None if from == CERTIFICATES => PathBuf::from(CERTIFICATES),
            None => bail!("`{from}` is not in the first stage"),
        };
        let mut destination = root.join(to.trim_start_matches('/'));
        if to.ends_with('/') {
            destination.push(source.file_name().context("it is a file")?);
        }
        std::fs::create_dir_all(destination.parent().context("it is in a folder")?)?;
        size += std::fs::copy(&source, &destination)
            .with_context(|| format!("could not copy `{}`", source.display()))?;
    }
    println!("── newcomer: the image has {} files and {} kB", image.copies.len(), size / 1000);
    Ok(())
}

/// Runs the program of the image; a program that is not static cannot start there.
fn start(root: &Path, image: &Image) -> Result<Child> {
    let mut chroot = Command::new("chroot");
    chroot.arg(format!("--userspec={0}:{0}", image.user)).arg(root).args(&image.command);
    // Like in a container, nothing of this machine's environment.
    chroot
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("KUBECONFIG", "/kubeconfig");
    chroot.spawn().context("could not run `chroot`")
}

fn kubectl(project: &Path, kubeconfig: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("kubectl");
    command.args(arguments).env("KUBECONFIG", kubeconfig).current_dir(project);
    let output = command.output().context("could not run kubectl")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::Image;

    #[test]
    fn only_known_instructions_are_read() {
        let text = "FROM rust AS build\nRUN cargo build --bin x\n\nFROM scratch\n\
                    COPY --from=build /src/target/release/x /operator\nUSER 7\n\
                    ENTRYPOINT [\"/operator\"]\nCMD [\"run\"]\n";
        let image = Image::of(text).expect("all instructions are known");
        assert_eq!(image.build, ["build", "--bin", "x"]);
        assert_eq!(image.copies, [("/src/target/release/x".to_owned(), "/operator".to_owned())]);
        assert_eq!((image.user.as_str(), image.command.len()), ("7", 2));
        let error = Image::of(&format!("{text}ADD x y\n")).expect_err("it is unknown");
        assert_eq!(error.to_string(), "`ADD x y` is not known here");
    }
}
