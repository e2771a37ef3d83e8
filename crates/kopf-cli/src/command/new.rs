//! `kopf new NAME`: creates an operator project that compiles, runs and passes its tests right
//! away.
//!
//! Writes to a temporary sibling folder first and then renames it to the new folder, so that a
//! failure leaves nothing half-written.

mod origin;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, anyhow};
use clap::Args;

use crate::failure::Failure;
use origin::Origin;

/// The arguments of `kopf new`.
#[derive(Args)]
pub(super) struct Arguments {
    /// The folder to create; its last part becomes the project's name
    path: PathBuf,
    /// The kind of your resource
    #[arg(long, default_value = "Greeting")]
    kind: String,
    /// The API group of your resource
    #[arg(long, default_value = "example.com")]
    group: String,
    /// Use the `kopf` crate from this folder instead of where this command came from
    #[arg(long, value_name = "DIR")]
    kopf: Option<PathBuf>,
    /// Use the `kopf` crate from this Git repository
    #[arg(long, value_name = "URL", conflicts_with = "kopf")]
    git: Option<String>,
    /// The commit of that repository
    #[arg(long, value_name = "COMMIT", requires = "git")]
    rev: Option<String>,
}

/// The files of a new project: path inside the project, template.
const FILES: [(&str, &str); 12] = [
    ("Cargo.toml", include_str!("new/templates/Cargo.toml.txt")),
    ("src/main.rs", include_str!("new/templates/main.rs.txt")),
    ("src/lib.rs", include_str!("new/templates/lib.rs.txt")),
    ("tests/operator.rs", include_str!("new/templates/operator.rs.txt")),
    ("example.yaml", include_str!("new/templates/example.yaml.txt")),
    ("Dockerfile", include_str!("new/templates/Dockerfile.txt")),
    ("README.md", include_str!("new/templates/README.md.txt")),
    ("AGENTS.md", include_str!("new/templates/AGENTS.md.txt")),
    (".gitignore", include_str!("new/templates/gitignore.txt")),
    (".dockerignore", include_str!("new/templates/dockerignore.txt")),
    (".github/workflows/ci.yaml", include_str!("new/templates/ci.yaml.txt")),
    (".devcontainer/devcontainer.json", include_str!("new/templates/devcontainer.json.txt")),
];

/// Creates the project.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let names = Names::new(arguments)?;
    if arguments.path.exists() {
        let error = anyhow!("the folder `{}` already exists", arguments.path.display());
        return Err(Failure::usage(error).hint("choose another name, or remove the folder"));
    }
    let staging = arguments.path.with_extension("kopf-new");
    let written = write(&staging, &names).and_then(|()| {
        std::fs::rename(&staging, &arguments.path)
            .with_context(|| format!("could not create `{}`", arguments.path.display()))
    });
    if let Err(error) = written {
        // The first error is the one to report; a leftover staging folder is only untidy.
        let _ = std::fs::remove_dir_all(&staging);
        return Err(Failure::new(error).hint("check that the parent folder exists and is writable"));
    }
    print_next_steps(&names, &arguments.path);
    Ok(())
}

fn print_next_steps(names: &Names, folder: &Path) {
    println!("Created the operator `{}`. Next:\n", names.project);
    println!("    cd {}", folder.display());
    println!("    cargo test                      # tests the handler on an embedded cluster;");
    println!("                                    # the first build takes a few minutes");
    println!("    cargo run -- run --embedded     # runs the operator with an embedded cluster");
    println!("    kopf dev                        # the same, and restarts it on every change");
    if names.origin.checkout().is_some() {
        println!(
            "\nThe project uses the crate `kopf` from a checkout on this machine. If it has to"
        );
        println!("compile elsewhere, such as in CI, create it with `kopf new --git URL`.");
    }
}

/// The names that differ between new projects.
struct Names {
    project: String,
    kind: String,
    singular: String,
    plural: String,
    group: String,
    origin: Origin,
}

impl Names {
    fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let project = arguments.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        check_project(project)?;
        check_kind(&arguments.kind)?;
        let singular = arguments.kind.to_lowercase();
        Ok(Self {
            project: project.to_owned(),
            plural: plural(&singular),
            singular,
            kind: arguments.kind.clone(),
            group: arguments.group.clone(),
            origin: origin(arguments)?,
        })
    }

    fn fill(&self, template: &str) -> String {
        template
            .replace("{{project}}", &self.project)
            .replace("{{crate}}", &self.project.replace('-', "_"))
            .replace("{{kind}}", &self.kind)
            .replace("{{singular}}", &self.singular)
            .replace("{{plural}}", &self.plural)
            .replace("{{group}}", &self.group)
            .replace("{{dependency}}", &self.origin.dependency())
            .replace("{{docker_note}}", &self.docker_note())
            .replace("{{docker_copy}}", &self.docker_copy())
            .replace("{{docker_build}}", &self.docker_build())
    }

    /// The note in the Dockerfile about a checkout outside of the project.
    fn docker_note(&self) -> String {
        let Some(_) = self.origin.checkout() else { return String::new() };
        format!(
            "\n# The project uses a checkout of Kopf, so build it with: {}",
            self.docker_build()
        )
    }

    fn docker_copy(&self) -> String {
        let checkout = self.origin.checkout().map(Path::display);
        checkout.map(|it| format!("COPY --from=kopf . {it}\n")).unwrap_or_default()
    }

    fn docker_build(&self) -> String {
        let context = self.origin.checkout().map(Path::display);
        let context = context.map(|it| format!("--build-context kopf={it} ")).unwrap_or_default();
        format!("docker build {context}-t you/{}:1 .", self.project)
    }
}

/// The source of the `kopf` crate for the project.
fn origin(arguments: &Arguments) -> Result<Origin, Failure> {
    if let Some(url) = &arguments.git {
        return Ok(Origin::Repository { url: url.clone(), revision: arguments.rev.clone() });
    }
    let Some(folder) = &arguments.kopf else { return Ok(Origin::of_this_command()) };
    if !folder.join("Cargo.toml").is_file() {
        let error = anyhow!("there is no crate in `{}`", folder.display());
        return Err(Failure::usage(error).hint("give the folder with the Cargo.toml of `kopf`"));
    }
    Ok(Origin::Folder(folder.canonicalize().unwrap_or_else(|_| folder.clone())))
}

fn check_project(name: &str) -> Result<(), Failure> {
    let first = name.chars().next().is_some_and(|c| c.is_ascii_lowercase());
    let rest = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if first && rest {
        return Ok(());
    }
    let error = anyhow!("`{name}` cannot be the name of a project");
    Err(Failure::usage(error).hint("use lower-case letters, digits and dashes, a letter first"))
}

fn check_kind(kind: &str) -> Result<(), Failure> {
    let first = kind.chars().next().is_some_and(|c| c.is_ascii_uppercase());
    if first && kind.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Ok(());
    }
    let error = anyhow!("`{kind}` cannot be the name of a kind");
    Err(Failure::usage(error).hint("use CamelCase, such as `Greeting`"))
}

/// The same simple English plural that `kube` derives for custom resources.
fn plural(singular: &str) -> String {
    if let Some(stem) = singular.strip_suffix('y')
        && !stem.ends_with(['a', 'e', 'i', 'o', 'u'])
    {
        return format!("{stem}ies");
    }
    let hissing = ["s", "x", "z", "ch", "sh"].iter().any(|end| singular.ends_with(end));
    if hissing { format!("{singular}es") } else { format!("{singular}s") }
}

fn write(folder: &Path, names: &Names) -> anyhow::Result<()> {
    for (path, template) in FILES {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .with_context(|| format!("could not create `{}`", parent.display()))?;
        std::fs::write(&path, names.fill(template))
            .with_context(|| format!("could not write `{}`", path.display()))?;
    }
    format_sources(folder);
    Ok(())
}

/// Formats the sources, because names have different lengths.
fn format_sources(folder: &Path) {
    let sources = FILES.iter().map(|(path, _)| folder.join(path));
    let sources = sources.filter(|path| path.extension().is_some_and(|it| it == "rs"));
    let mut rustfmt = Command::new("rustfmt");
    // The project also works without the right format, and so without this program.
    let _ = rustfmt.args(["--edition", "2024"]).args(sources).output();
}
