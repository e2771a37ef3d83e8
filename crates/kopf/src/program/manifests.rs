//! `manifests`: what to deploy, derived from what the handlers declare.

use std::path::PathBuf;

use clap::Args;
use kopf_cli::failure::Failure;
use kopf_cli::manifests::{self, Options};

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
    /// Write the files into this folder, for `kubectl apply -k`, instead of printing them
    #[arg(long, short, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Prints the manifests, or writes them into a folder.
pub(super) fn run(operator: &Operator, arguments: &ManifestsArguments) -> Result<(), Failure> {
    let handlers: Vec<_> = operator.handlers().cloned().collect();
    let options = Options {
        name: operator.name().to_owned(),
        namespace: arguments.namespace.clone(),
        serves: (!arguments.serves.is_empty()).then(|| arguments.serves.clone()),
        image: arguments.image.clone(),
    };
    let files = manifests::files(&handlers, &options).map_err(|error| {
        Failure::usage(error).hint("name the resource by group, version and plural, or by a type")
    })?;
    let Some(folder) = &arguments.output else {
        // A kustomization only makes sense beside the files that it names.
        let documents = files.into_iter().filter(|(name, _)| name != "kustomization.yaml");
        let documents: Vec<_> = documents.flat_map(|(_, documents)| documents).collect();
        print!("{}", manifests::to_yaml(&documents)?);
        return Ok(());
    };
    std::fs::create_dir_all(folder)?;
    for (name, documents) in files {
        std::fs::write(folder.join(name), manifests::to_yaml(&documents)?)?;
    }
    println!("Written. Deploy it with `kubectl apply -k {}`.", folder.display());
    Ok(())
}
