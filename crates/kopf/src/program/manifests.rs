//! `manifests`: what to deploy, derived from what the handlers declare.

use std::path::{Path, PathBuf};

use clap::Args;
use kopf_cli::failure::Failure;
use kopf_cli::manifests::{self, Content, Options};

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
    #[arg(long, short, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Prints the manifests, or writes them into a folder.
pub(super) fn run(operator: &Operator, arguments: &ManifestsArguments) -> Result<(), Failure> {
    if let Some(pattern) = arguments.serves.iter().find(|name| name.contains(['*', '!', ','])) {
        return Err(Failure::usage(format!("`{pattern}` is a pattern, not a namespace"))
            .hint("privileges are granted in namespaces: name each with its own `--serves`"));
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
    };
    let files = manifests::files(&handlers, &operator.settings, &options);
    let Some(folder) = &arguments.output else {
        // The others only make sense as files.
        let documents = files.iter().filter(|file| matches!(file.content, Content::Documents(_)));
        let texts: Vec<String> = documents.map(|file| file.text()).collect::<Result<_, _>>()?;
        print!("{}", texts.join("---\n"));
        return Ok(());
    };
    let texts = files.iter().map(|file| Ok((file.name, file.text()?)));
    let texts: Vec<(&str, String)> = texts.collect::<Result<_, Failure>>()?;
    write(folder, &texts).map_err(|error| {
        Failure::usage(format!("could not write into `{}`: {error}", folder.display()))
            .hint("give a writable folder with `--output`")
    })?;
    let folder = folder.display();
    println!("Written. Build the image and deploy it:\n");
    println!("    docker build -t {} -f {folder}/Dockerfile .", arguments.image);
    println!("    kubectl apply -k {folder}");
    Ok(())
}

/// Writes all files beside their places first, so that a full disk leaves the former ones whole.
fn write(folder: &Path, texts: &[(&str, String)]) -> std::io::Result<()> {
    let staging = |name: &str| folder.join(format!(".{name}.kopf-new"));
    std::fs::create_dir_all(folder)?;
    let written = texts.iter().try_for_each(|(name, text)| std::fs::write(staging(name), text));
    if let Err(error) = written {
        for (name, _) in texts {
            // The first error is the one to report; a leftover is only untidy.
            let _ = std::fs::remove_file(staging(name));
        }
        return Err(error);
    }
    texts.iter().try_for_each(|(name, _)| std::fs::rename(staging(name), folder.join(name)))
}

/// The name of this program's file, which cargo gives to the same program in the image.
fn program(operator: &str) -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_deref().and_then(|path| path.file_name()).and_then(|name| name.to_str());
    name.unwrap_or(operator).to_owned()
}
