//! `run --embedded`: the operator with a Kubernetes API server in the same process.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use kopf_apiserver::{Listening, Server};
use kopf_cli::load::{self, Document};
use kopf_cli::manifests;
use kopf_client::{Cluster, Policy};
use kopf_model::{Selector, resource::SelectorName};
use serde_json::{Value, json};

use super::arguments::{RunArguments, webhooks};
use super::{Failure, until_stopped};
use crate::{Config, Operator};

#[derive(Args)]
#[command(next_help_heading = "Without a cluster")]
pub(super) struct EmbeddedArguments {
    /// Run a Kubernetes API server in this process and work with it
    #[arg(long)]
    pub(super) embedded: bool,
    /// Manifests to load first: files or folders
    #[arg(long, value_name = "PATH", num_args = 1.., requires = "embedded")]
    load: Vec<PathBuf>,
    /// Where to write the kubeconfig for kubectl and other clients
    #[arg(long, value_name = "FILE", default_value = "kopf.kubeconfig", requires = "embedded")]
    kubeconfig: PathBuf,
    /// The port of the API server on loopback; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0, requires = "embedded")]
    port: u16,
}

/// Starts the server, installs what the operator needs, and runs the operator there.
pub(super) async fn run(
    operator: Operator,
    arguments: &RunArguments,
    config: Config,
) -> Result<(), Failure> {
    let embedded = &arguments.embedded;
    let documents = load::read(&embedded.load).map_err(|error| {
        Failure::usage(error).hint("nothing was started; mend the manifest and try again")
    })?;
    let server = Server::new();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, embedded.port));
    let listening = server
        .listen(address)
        .await
        .map_err(|error| Failure::from(error).hint("leave `--port` out to take a free one"))?;
    let client = kube::Client::new(server.service(), "default");
    let handlers: Vec<_> = operator.handlers().cloned().collect();
    let typed = manifests::definitions(&handlers)
        .into_iter()
        .map(|manifest| Document { place: "a definition of the operator".into(), manifest });
    load::apply(&client, &typed.collect::<Vec<_>>()).await?;
    let mut early = documents;
    let late = early.split_off(early.partition_point(is_definition));
    load::apply(&client, &early).await.map_err(Failure::usage)?;
    let defined =
        define_missing(&client, operator.handlers().filter_map(|it| it.selector.as_ref()));
    let sample = defined.await?;
    load::apply(&client, &late).await.map_err(Failure::usage)?;
    write(&embedded.kubeconfig, &listening)?;
    announce(&embedded.kubeconfig, &listening, sample.as_ref());
    // From here on it is the operator who speaks.
    arguments.logging().install();
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let webhooks = config.webhooks.unwrap_or_else(|| webhooks(operator.name(), loopback));
    let config = Config { client: Some(client), webhooks: Some(webhooks), ..config };
    let running = operator.start(config).await?;
    let outcome = until_stopped(running).await;
    listening.shutdown().await;
    outcome
}

fn is_definition(document: &Document) -> bool {
    document.manifest["kind"] == "CustomResourceDefinition"
}

/// Defines what handlers name by group, version and plural, and nobody has defined.
///
/// A real cluster has its definitions from elsewhere; here there is nobody else to make them. Gives
/// a sample object of the first one.
async fn define_missing(
    client: &kube::Client,
    selectors: impl Iterator<Item = &Selector>,
) -> Result<Option<Value>, Failure> {
    let cluster = Cluster::with_client(client.clone(), Policy::default());
    let mut known = cluster.discover(None).await?.resources;
    let mut sample = None;
    for selector in selectors {
        let Selector { group: Some(group), version: Some(version), name } = selector else {
            continue;
        };
        let (SelectorName::Any(plural) | SelectorName::Plural(plural)) = name else { continue };
        if group.is_empty() || known.iter().any(|resource| selector.matches(resource)) {
            continue;
        }
        let kind = guess_kind(plural);
        let definition = definition(group, version, plural, &kind);
        let place = format!("the definition of {plural}.{group}");
        load::apply(client, &[Document { place, manifest: definition }]).await?;
        sample.get_or_insert_with(|| {
            json!({
                "apiVersion": format!("{group}/{version}"), "kind": kind,
                "metadata": {"name": "example"}, "spec": {"field": "value"},
            })
        });
        known = cluster.discover(None).await?.resources;
    }
    Ok(sample)
}

fn guess_kind(plural: &str) -> String {
    let singular = match plural {
        _ if plural.ends_with("ies") => format!("{}y", &plural[..plural.len() - 3]),
        _ if plural.ends_with("sses") => plural[..plural.len() - 2].to_owned(),
        _ => plural.strip_suffix('s').unwrap_or(plural).to_owned(),
    };
    let mut letters = singular.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn definition(group: &str, version: &str, plural: &str, kind: &str) -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": anything, "status": anything},
                }},
            }],
        },
    })
}

/// Writes the kubeconfig at once: a file that exists is a file that works.
fn write(path: &Path, listening: &Listening) -> Result<(), Failure> {
    let staging = path.with_extension("kopf-new");
    std::fs::write(&staging, listening.kubeconfig())
        .and_then(|()| std::fs::rename(&staging, path))
        .map_err(|error| {
            Failure::usage(format!("could not write `{}`: {error}", path.display()))
                .hint("give a writable path with `--kubeconfig`")
        })
}

fn announce(path: &Path, listening: &Listening, sample: Option<&Value>) {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    println!("A Kubernetes API server is ready at {}. In another terminal:\n", listening.url());
    println!("    export KUBECONFIG={}", path.display());
    if let Some(sample) = sample {
        println!("    kubectl create -f - <<< '{sample}'");
    }
    println!("\nPress Ctrl-C to stop.");
}

#[cfg(test)]
mod tests;
