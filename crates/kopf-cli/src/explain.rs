//! `kopf explain KIND/NAME`: what an operator did to one object, and what it waits for.
//!
//! Reads the object from the cluster; the story itself is told by [`story`].

pub mod story;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use kopf_client::{Cluster, DefaultLogin, Failure as Class, Policy, RequestError, Target};
use kopf_model::Resource;

use crate::failure::Failure;

/// What can be typed after `kopf explain`.
#[derive(Args)]
pub struct Arguments {
    /// The object, such as `database/orders`; the kind may be a plural or a short name too
    object: String,
    /// The namespace; by default that of the kubeconfig
    #[arg(short, long)]
    namespace: Option<String>,
    /// The context of the kubeconfig
    #[arg(long)]
    context: Option<String>,
    /// The prefix of the operator's annotations
    #[arg(long, default_value = "kopf.zalando.org")]
    prefix: String,
    /// The operator's finalizer
    #[arg(long, default_value = "kopf.zalando.org/KopfFinalizerMarker")]
    finalizer: String,
}

/// Nobody waits for a diagnosis for longer than this.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// Explains one object.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (kind, name) = parse(&arguments.object)?;
    let login = DefaultLogin { context: arguments.context.clone(), ..DefaultLogin::default() };
    let policy = Policy {
        request_timeout: REQUEST_TIMEOUT,
        error_backoffs: vec![Duration::from_secs(1)],
        ..Policy::default()
    };
    let cluster = Cluster::new(Arc::new(login), policy);
    let default_namespace = cluster.connect().await.map_err(|error| {
        Failure::new(error).hint("set KUBECONFIG, or start a cluster with `kopf cluster`")
    })?;
    let resource = find(&cluster, kind).await?;
    let namespace = arguments.namespace.as_deref().unwrap_or(&default_namespace);
    let namespace = resource.namespaced.then_some(namespace);
    let target = Target { resource: &resource, namespace, name, subresource: None };
    let object = cluster.get(target).await.map_err(|error| absent(error, &resource, name))?;
    let names =
        story::Names { prefix: arguments.prefix.clone(), finalizer: arguments.finalizer.clone() };
    let story = story::read(&object, &names)
        .with_context(|| format!("could not read the notes on {object:?}"))?;
    print!("{}", story.render(jiff::Timestamp::now()));
    Ok(())
}

fn parse(object: &str) -> Result<(&str, &str), Failure> {
    match object.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok((kind, name)),
        _ => Err(Failure::usage(anyhow!("`{object}` does not name an object"))
            .hint("write it as KIND/NAME, such as `database/orders`")),
    }
}

/// The resource that a person means; preferred versions and the core group first, as kubectl does.
async fn find(cluster: &Cluster, kind: &str) -> Result<Resource, Failure> {
    let discovered = cluster.discover(None).await.map_err(|error| {
        Failure::new(error).hint("is the cluster of your kubeconfig running and reachable?")
    })?;
    let (name, group) =
        kind.split_once('.').map_or((kind, None), |(name, group)| (name, Some(group)));
    let wanted = name.to_lowercase();
    let mut found: Vec<Resource> = discovered
        .resources
        .into_iter()
        .filter(|resource| group.is_none_or(|group| resource.group == group))
        .filter(|resource| {
            resource.plural == wanted
                || resource.singular == wanted
                || resource.kind.to_lowercase() == wanted
                || resource.shortcuts.contains(&wanted)
        })
        .collect();
    found.sort_by_key(|resource| (!resource.preferred, !resource.group.is_empty()));
    found.into_iter().next().ok_or_else(|| {
        Failure::usage(anyhow!("the cluster has no kind `{kind}`")).hint(
            "`kubectl api-resources` lists them; is the custom resource definition installed?",
        )
    })
}

fn absent(error: RequestError, resource: &Resource, name: &str) -> Failure {
    match error.failure {
        Class::NotFound => Failure::new(anyhow!("there is no {} `{name}`", resource.kind))
            .hint("check the name and the namespace (`-n`)"),
        Class::Forbidden => Failure::new(error).hint("your account may not `get` this resource"),
        _ => Failure::new(error),
    }
}
