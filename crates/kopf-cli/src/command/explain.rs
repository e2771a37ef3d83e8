//! `kopf explain KIND/NAME`: what an operator did to one object, and what it is waiting for.
//!
//! Reads the object from the cluster, and asks the running operator if it is reachable. [`stored`]
//! explains the stored state, [`memory`] the operator's in-memory state.

mod children;
mod events;
mod memory;
mod stored;

use anyhow::{Context, anyhow};
use clap::Args;
use kopf_client::{Cluster, Failure as Class, RequestError, Target};
use kopf_engine::journal::resource_name;
use kopf_model::{Object, Resource};
use kopf_ui::{ObjectAnswer, Operator, OperatorError};
use kube::config::Kubeconfig;

use super::output::Output;
use super::{connection, shards};
use crate::failure::Failure;
use crate::kubeconfig;

/// The arguments of `kopf explain`.
#[derive(Args)]
pub(super) struct Arguments {
    /// The object, such as `database/orders`; the kind may be a plural or a short name too
    #[arg(value_name = "KIND/NAME")]
    object: String,
    /// The namespace; by default that of the kubeconfig
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Where the running operator serves its probes; found through the kubeconfig by default
    #[arg(long, value_name = "URL", env = "KOPF_OPERATOR", hide_env = true)]
    operator: Option<String>,
    /// The prefix of the operator's annotations
    #[arg(long, default_value = "kopf.zalando.org", value_name = "DOMAIN")]
    prefix: String,
    /// The operator's finalizer
    #[arg(long, default_value = "kopf.zalando.org/KopfFinalizerMarker", value_name = "NAME")]
    finalizer: String,
    /// How to show it; as JSON or YAML, the object and what the operator remembers of it
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

/// The suffix of the annotation that an operator derives from its own name.
const DERIVED_ANNOTATION: &str = ".kopf.dev/last-handled-configuration";
const DERIVED_FINALIZER: &str = ".kopf.dev/finalizer";
/// The minimum similarity of names that are suggested.
const SIMILAR: f64 = 0.75;

/// Explains one object.
pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (kind, name) = parse(&arguments.object)?;
    let operator = operator(arguments.operator.as_deref(), arguments.context.as_deref())?;
    let context = arguments.context.as_deref();
    let cluster = connection::cluster(context);
    let default_namespace = cluster.connect().await.map_err(connection::no_login)?;
    let resource = find(&cluster, kind, context).await?;
    let namespace = arguments.namespace.as_deref().unwrap_or(&default_namespace);
    let namespace = resource.namespaced.then_some(namespace);
    let target = Target { resource: &resource, namespace, name, subresource: None };
    let found = cluster.get(target).await;
    let answer = match &operator {
        Some(operator) => Some(operator.object(&resource_name(&resource), namespace, name).await),
        None => None,
    };
    if arguments.output != Output::Table {
        return print_document(arguments.output, found, answer, &resource, (namespace, name));
    }
    let now = jiff::Timestamp::now();
    let is_answered = matches!(answer, Some(Ok(_)));
    let object = match (found, &answer) {
        (Ok(object), _) => {
            print!("{}", stored_state(arguments, &object)?.render(now, is_answered));
            print!("{}", children::tell(&cluster, &object).await);
            print!("{}", shards::owners(&cluster, &object).await);
            Some(object)
        }
        (Err(error), Some(Ok(ObjectAnswer::Known(chronicle))))
            if error.failure == Class::NotFound =>
        {
            println!("{} {}", chronicle.kind, place(namespace, name));
            println!("  no longer exists in the cluster");
            None
        }
        (Err(error), _) => return Err(absent(error, &resource, namespace, name)),
    };
    match (&operator, answer) {
        (Some(operator), Some(Ok(ObjectAnswer::Known(chronicle)))) => {
            print!("{}", memory::render(&operator.to_string(), &chronicle, now));
        }
        (Some(operator), Some(Ok(ObjectAnswer::Unknown(unknown)))) => {
            let operator = operator.to_string();
            let object = object.as_ref();
            print!("{}", memory::render_unknown(&operator, &unknown, &resource, object));
        }
        (Some(operator), Some(Err(error))) => {
            println!("\n  the operator at {operator} does not answer: {:#}", anyhow!(error));
            print!("{}", events::tell(&cluster, namespace, name).await);
        }
        _ => print!("{}", events::tell(&cluster, namespace, name).await),
    }
    Ok(())
}

/// The object and the operator's memory as one document.
fn print_document(
    output: Output,
    found: Result<Object, RequestError>,
    answer: Option<Result<ObjectAnswer, OperatorError>>,
    resource: &Resource,
    (namespace, name): (Option<&str>, &str),
) -> Result<(), Failure> {
    let remembered = match answer {
        Some(Ok(ObjectAnswer::Known(chronicle))) => serde_json::to_value(&chronicle)?,
        _ => serde_json::Value::Null,
    };
    let object = match found {
        Ok(object) => object.value().clone(),
        Err(error) if error.failure == Class::NotFound && !remembered.is_null() => {
            serde_json::Value::Null
        }
        Err(error) => return Err(absent(error, resource, namespace, name)),
    };
    let document = serde_json::json!({"object": object, "remembered": remembered});
    print!("{}", output.text(&document)?.unwrap_or_default());
    Ok(())
}

/// The annotation names of the operator: from the arguments, or derived ones that the object has.
fn names(arguments: &Arguments, object: &Object) -> stored::Names {
    let typed =
        stored::Names { prefix: arguments.prefix.clone(), finalizer: arguments.finalizer.clone() };
    let annotations = object.value()["metadata"]["annotations"].as_object();
    let mut keys = annotations.into_iter().flatten().map(|(key, _)| key.as_str());
    let is_typed = |key: &str| key.split('/').next() == Some(&typed.prefix);
    if keys.clone().any(is_typed) {
        return typed;
    }
    let finalizers = object.value()["metadata"]["finalizers"].as_array();
    let mut finalizers = finalizers.into_iter().flatten().filter_map(|it| it.as_str());
    let derived = keys
        .find_map(|key| key.strip_suffix(DERIVED_ANNOTATION))
        .or_else(|| finalizers.find_map(|it| it.strip_suffix(DERIVED_FINALIZER)));
    derived.map_or(typed, |name| stored::Names {
        prefix: format!("{name}.kopf.dev"),
        finalizer: format!("{name}{DERIVED_FINALIZER}"),
    })
}

fn stored_state(arguments: &Arguments, object: &Object) -> Result<stored::StoredState, Failure> {
    let names = names(arguments, object);
    let stored = stored::read(object, &names)
        .with_context(|| {
            format!("could not read the stored state of {} {}", object.kind(), object.key())
        })
        .map_err(|error| {
            Failure::new(error).hint("is `--prefix` the prefix of your operator's annotations?")
        })?;
    Ok(stored)
}

/// The operator to ask: from the arguments, or the one recorded in the kubeconfig.
pub(super) fn operator(
    url: Option<&str>,
    context: Option<&str>,
) -> Result<Option<Operator>, Failure> {
    if let Some(url) = url {
        let operator = Operator::at(url).map_err(|error| {
            Failure::usage(error)
                .hint("give the address of the operator's probes, such as `http://127.0.0.1:8080`")
        })?;
        return Ok(Some(operator));
    }
    // The login reports an unreadable kubeconfig.
    let Ok(config) = Kubeconfig::read() else { return Ok(None) };
    let url = kubeconfig::operator_url(&config, context);
    Ok(url.and_then(|url| Operator::at(&url).ok()))
}

fn parse(object: &str) -> Result<(&str, &str), Failure> {
    match object.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok((kind, name)),
        _ => Err(Failure::usage(anyhow!("`{object}` does not name an object"))
            .hint("write it as KIND/NAME, such as `database/orders`")),
    }
}

/// The resource with a name as typed; preferred versions and the core group first, as in kubectl.
pub(super) async fn find(
    cluster: &Cluster,
    kind: &str,
    context: Option<&str>,
) -> Result<Resource, Failure> {
    let discovered = cluster.discover(None).await;
    let discovered = discovered.map_err(|error| connection::unreachable(error, context))?;
    let (name, group) =
        kind.split_once('.').map_or((kind, None), |(name, group)| (name, Some(group)));
    let wanted = name.to_lowercase();
    let is_meant = |resource: &&Resource| {
        group.is_none_or(|group| resource.group == group)
            && (resource.plural == wanted
                || resource.singular == wanted
                || resource.kind.to_lowercase() == wanted
                || resource.shortcuts.contains(&wanted))
    };
    let mut found: Vec<&Resource> = discovered.resources.iter().filter(is_meant).collect();
    found.sort_by_key(|resource| (!resource.preferred, !resource.group.is_empty()));
    found.first().map(|resource| (*resource).clone()).ok_or_else(|| {
        let hint = match similar(&wanted, &discovered.resources) {
            Some(name) => format!("did you mean `{name}`?"),
            None => "`kubectl api-resources` lists them; is the custom resource definition \
                     installed?"
                .to_owned(),
        };
        Failure::usage(anyhow!("the cluster has no kind `{kind}`")).hint(hint)
    })
}

/// The most similar name, if any is similar enough.
fn similar(wanted: &str, resources: &[Resource]) -> Option<String> {
    resources
        .iter()
        .flat_map(|resource| [resource.kind.to_lowercase(), resource.plural.clone()])
        .map(|name| (strsim::jaro_winkler(wanted, &name), name))
        .filter(|(likeness, _)| *likeness >= SIMILAR)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, name)| name)
}

fn place(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

fn absent(
    error: RequestError,
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
) -> Failure {
    let place = place(namespace, name);
    match error.failure {
        Class::NotFound => Failure::new(anyhow!("there is no {} {place}", resource.kind))
            .hint("check the name and the namespace (`-n`)"),
        Class::Forbidden => {
            let question = format!("kubectl auth can-i get {}", resource.plural);
            let said = format!("could not read {} {place}", resource.kind);
            Failure::new(anyhow!(error).context(said)).hint(format!(
                "your account may not `get` {}; ask with `{question}`",
                resource.plural
            ))
        }
        _ => connection::unreachable(error, None),
    }
}
