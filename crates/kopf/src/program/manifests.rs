//! `manifests`: what to deploy, derived from what the handlers declare.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use kopf_cli::failure::Failure;
use kopf_cli::manifests::{self, Content, File, Options, extras, helm, keeping, olm};
use kopf_core::Handler;

use crate::Operator;

#[derive(Args)]
pub(super) struct ManifestsArguments {
    /// The container image of the operator
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// The namespace that the operator lives in
    #[arg(long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// Serve only this namespace, with privileges only there; repeatable
    #[arg(long, value_name = "NAME")]
    serves: Vec<String>,
    /// How many replicas to run; with more than one, one leads and the others stand by
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    replicas: u32,
    /// Let the replicas share the objects instead
    #[arg(long)]
    shards: bool,
    /// Write the files into this folder, for `kubectl apply -k`, instead of printing them
    #[arg(long, short, value_name = "FOLDER", required_if_eq_any = [("format", "helm"), ("format", "olm")])]
    output: Option<PathBuf>,
    /// What to write: manifests for kubectl, a Helm chart, or a bundle for the Operator Lifecycle Manager
    #[arg(long, value_enum, default_value_t = Format::Kubectl)]
    format: Format,
    /// Serve metrics over TLS, only to those who may `get` the path `/metrics`
    #[arg(long)]
    secure_metrics: bool,
    /// In the NetworkPolicy, allow only Pods of this namespace to read the metrics; repeatable
    #[arg(long, value_name = "NAME")]
    metrics_from: Vec<String>,
    /// Also a ServiceMonitor, alert rules, a Grafana dashboard and a NetworkPolicy
    #[arg(long)]
    extras: bool,
    /// Overwrite files that were changed since they were generated
    #[arg(long, requires = "output")]
    force: bool,
}

/// The format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Manifests and a kustomization.
    Kubectl,
    /// A chart.
    Helm,
    /// A bundle.
    Olm,
}

/// Prints the manifests, or writes them into a folder.
pub(super) fn run(operator: &Operator, arguments: &ManifestsArguments) -> Result<(), Failure> {
    if let Some(pattern) = arguments.serves.iter().find(|name| name.contains(['*', '!', ','])) {
        return Err(Failure::usage(format!("`{pattern}` is a pattern, not a namespace"))
            .hint("privileges are granted in namespaces: name each with its own `--serves`"));
    }
    let has_policy = arguments.extras || arguments.format == Format::Helm;
    if !arguments.metrics_from.is_empty() && !has_policy {
        return Err(Failure::usage(
            "`--metrics-from` is for the NetworkPolicy, which is not written",
        )
        .hint("add `--extras`, or write a chart with `--format helm`"));
    }
    let handlers: Vec<_> = operator.handlers().cloned().collect();
    let options = Options {
        name: operator.name().to_owned(),
        namespace: arguments.namespace.clone(),
        serves: (!arguments.serves.is_empty()).then(|| arguments.serves.clone()),
        image: arguments.image.clone(),
        program: program(operator.name()),
        replicas: arguments.replicas,
        shards: arguments.shards,
        secure_metrics: arguments.secure_metrics,
        metrics_from: arguments.metrics_from.clone(),
    };
    let Some(folder) = &arguments.output else {
        // The other files make sense only as files, not in a stream.
        let files = kubectl_files(operator, &handlers, &options, arguments.extras);
        let documents = files.iter().filter(|file| matches!(file.content, Content::Documents(_)));
        let texts: Vec<String> = documents.map(File::text).collect::<Result<_, _>>()?;
        print!("{}", texts.join("---\n"));
        return Ok(());
    };
    let settings = &operator.settings;
    let chart =
        |files: Vec<helm::ChartFile>| files.into_iter().map(|it| (it.path, it.text)).collect();
    let texts: Vec<(String, String)> = match arguments.format {
        Format::Helm => chart(helm::files(&handlers, settings, &options)?),
        Format::Olm => chart(olm::files(&handlers, settings, &options)?),
        Format::Kubectl => {
            let files = kubectl_files(operator, &handlers, &options, arguments.extras);
            // A project that has a Dockerfile needs no other one.
            let has_own = Path::new("Dockerfile").is_file();
            let is_needed =
                |file: &&File| !has_own || !matches!(file.content, Content::Dockerfile(_));
            let texts =
                files.iter().filter(is_needed).map(|it| Ok((it.name.to_owned(), it.text()?)));
            texts.collect::<Result<_, Failure>>()?
        }
    };
    let written = keeping::write(folder, &texts, arguments.force).map_err(|error| {
        Failure::usage(format!("could not write into `{}`: {error}", folder.display()))
            .hint("give a writable folder with `--output`")
    })?;
    for name in &written.kept {
        let path = folder.join(name);
        let path = path.display();
        eprintln!(
            "kept {path}, which was changed; the generated one is {path}.new (--force overwrites)"
        );
    }
    print_next_steps(arguments, folder, operator.name());
    Ok(())
}

fn kubectl_files(
    operator: &Operator,
    handlers: &[Handler],
    options: &Options,
    with_extras: bool,
) -> Vec<File> {
    let mut files = manifests::files(handlers, &operator.settings, options);
    if with_extras {
        let extras = extras::files(handlers, options);
        for file in &mut files {
            if let Content::Kustomization(list) = &mut file.content
                && let Some(names) = list["resources"].as_array_mut()
            {
                names.extend(extras.iter().map(|file| file.name.into()));
            }
        }
        files.extend(extras);
    }
    files
}

fn print_next_steps(arguments: &ManifestsArguments, folder: &Path, name: &str) {
    let (image, folder) = (&arguments.image, folder.display());
    let namespace = &arguments.namespace;
    println!("Written. Next:\n");
    match arguments.format {
        Format::Kubectl => {
            let file = match Path::new("Dockerfile").is_file() {
                true => String::new(),
                false => format!("-f {folder}/Dockerfile "),
            };
            println!("    docker build -t {image} {file}.");
            println!("    kubectl apply -k {folder}");
        }
        Format::Helm => {
            println!("    helm lint {folder}");
            println!("    helm install {name} {folder} --namespace {namespace} --create-namespace");
        }
        Format::Olm => {
            println!("    operator-sdk bundle validate {folder}");
            println!("    docker build -t {image}-bundle -f {folder}/bundle.Dockerfile {folder}");
        }
    }
}

/// The file name of this program, which cargo also gives to the program in the image.
fn program(operator: &str) -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_deref().and_then(|path| path.file_name()).and_then(|name| name.to_str());
    name.unwrap_or(operator).to_owned()
}
