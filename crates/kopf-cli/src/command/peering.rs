//! `kopf freeze` and `kopf resume`: pause operators with a peering record of a higher priority.
//!
//! Writes a peer's record to the peering objects, as Kopf's commands do. The operators see it and
//! pause until the record is removed or expires.

use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use kopf_client::{Cluster, Failure as Class, PatchContent, RequestError, Target, Urgency};
use kopf_model::Resource;
use kopf_model::namespace::NamespacePattern;
use kopf_model::peering::{self, Peer};
use serde_json::Value;

use super::connection;
use crate::failure::Failure;

/// The arguments of `kopf freeze`.
#[derive(Args)]
pub(super) struct FreezeArguments {
    /// The name of the peering object
    #[arg(short = 'P', long, value_name = "NAME", env = "KOPF_FREEZE_PEERING", hide_env = true)]
    peering: String,
    #[command(flatten)]
    place: Place,
    /// The priority; operators with a lower one pause
    #[arg(
        short,
        long,
        default_value_t = 100,
        value_name = "NUMBER",
        allow_negative_numbers = true
    )]
    priority: i64,
    /// The priority of a developer, 666
    #[arg(long, conflicts_with = "priority")]
    dev: bool,
    /// For how many seconds, unless `kopf resume` comes first
    #[arg(short = 't', long, value_name = "SECONDS")]
    lifetime: u32,
    /// A message; accepted for compatibility with Kopf, and ignored
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
}

/// The arguments of `kopf resume`.
#[derive(Args)]
pub(super) struct ResumeArguments {
    /// The name of the peering object
    #[arg(short = 'P', long, value_name = "NAME", env = "KOPF_RESUME_PEERING", hide_env = true)]
    peering: String,
    #[command(flatten)]
    place: Place,
}

/// The operators to pause, and the identity of the record.
#[derive(Args)]
struct Place {
    /// The namespace of the operators, or those of a pattern such as `team-*,!team-x`; repeatable
    #[arg(short = 'n', long = "namespace", value_name = "NAME", conflicts_with = "all_namespaces")]
    namespaces: Vec<String>,
    /// The operators of the whole cluster; also without `-n`
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Whose record it is; by default `user@host`
    #[arg(short, long, value_name = "NAME")]
    id: Option<String>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// The priority of `--dev`.
const DEVELOPER: i64 = 666;

/// Pauses the operators.
pub(super) async fn freeze(arguments: &FreezeArguments) -> Result<(), Failure> {
    let peer = Peer {
        identity: arguments.place.identity(),
        priority: if arguments.dev { DEVELOPER } else { arguments.priority },
        lifetime: Duration::from_secs(arguments.lifetime.into()),
        lastseen: jiff::Timestamp::now(),
    };
    for place in arguments.place.write(&arguments.peering, &peer.announcement()).await? {
        println!(
            "{place}: operators of a priority below {} pause for {} s, or until `kopf resume`",
            peer.priority, arguments.lifetime
        );
    }
    Ok(())
}

/// Ends a pause.
pub(super) async fn resume(arguments: &ResumeArguments) -> Result<(), Failure> {
    let identity = arguments.place.identity();
    let removal = Peer::removal([identity.as_str()]);
    for place in arguments.place.write(&arguments.peering, &removal).await? {
        println!("{place}: the record of {identity} is gone");
    }
    Ok(())
}

impl Place {
    fn identity(&self) -> String {
        self.id.clone().unwrap_or_else(kopf_engine::person)
    }

    /// Patches all peering objects and returns their names.
    async fn write(&self, peering: &str, patch: &Value) -> Result<Vec<String>, Failure> {
        let context = self.context.as_deref();
        let cluster = connection::cluster(context);
        cluster.connect().await.map_err(connection::no_login)?;
        let resources = self.resources(&cluster).await?;
        let namespaces = self.namespaces(&cluster).await?;
        let mut written = Vec::new();
        for resource in &resources {
            for namespace in &namespaces {
                let namespace = namespace.as_deref();
                let subresource = resource.subresources.contains("status").then_some("status");
                let target = Target { resource, namespace, name: peering, subresource };
                let content = PatchContent::Merge(patch.to_string().into());
                match cluster.patch(target, content, Urgency::Urgent).await {
                    Ok(_) => written.push(called(&target)),
                    // It may be absent in some of several places, but not in all.
                    Err(error) if error.failure == Class::NotFound => {}
                    Err(error) => return Err(refused(error, &target)),
                }
            }
        }
        match written.is_empty() {
            true => Err(self.nowhere(peering, &resources)),
            false => Ok(written),
        }
    }

    /// The peering resources of the cluster, of either group, as operators look them up.
    async fn resources(&self, cluster: &Cluster) -> Result<Vec<Resource>, Failure> {
        let version = |group: &str| (group.to_owned(), peering::VERSION.to_owned());
        let versions = peering::GROUPS.map(version).into();
        let discovered = cluster.discover_versions(&versions).await;
        let discovered =
            discovered.map_err(|error| connection::unreachable(error, self.context.as_deref()))?;
        let plural = peering::plural(self.namespaces.is_empty());
        let found: Vec<Resource> =
            discovered.resources.into_iter().filter(|it| it.plural == plural).collect();
        if found.is_empty() {
            let error = anyhow!("the cluster has no `{plural}`");
            return Err(Failure::new(error)
                .hint("install the peering definitions, such as those of `examples/19-peering`"));
        }
        Ok(found)
    }

    /// The selected namespaces; `None` means the whole cluster.
    async fn namespaces(&self, cluster: &Cluster) -> Result<Vec<Option<String>>, Failure> {
        let patterns: Vec<NamespacePattern> =
            self.namespaces.iter().map(|text| NamespacePattern::new(text)).collect();
        if patterns.is_empty() {
            return Ok(vec![None]);
        }
        let exact: Option<Vec<&str>> = patterns.iter().map(NamespacePattern::exact).collect();
        if let Some(names) = exact {
            return Ok(names.into_iter().map(|name| Some(name.to_owned())).collect());
        }
        let request = http::Request::get("/api/v1/namespaces").body(Vec::new())?;
        let list: Value = cluster.client().await?.request(request).await.map_err(|error| {
            Failure::new(anyhow!(error).context("could not list the namespaces"))
                .hint("patterns need the right to `list` namespaces; or name them one by one")
        })?;
        let names = list["items"].as_array().into_iter().flatten();
        let names = names.filter_map(|item| item["metadata"]["name"].as_str());
        let is_meant = |name: &&str| patterns.iter().any(|pattern| pattern.matches(name));
        Ok(names.filter(is_meant).map(|name| Some(name.to_owned())).collect())
    }

    fn nowhere(&self, peering: &str, resources: &[Resource]) -> Failure {
        let kind = resources.first().map_or("peering object", |resource| resource.kind.as_str());
        let places = match self.namespaces.as_slice() {
            [] => String::new(),
            namespaces => format!(" in {}", namespaces.join(", ")),
        };
        Failure::new(anyhow!("there is no {kind} {peering}{places}"))
            .hint("check the name (`-P`) and the namespaces (`-n`); operators name theirs at start")
    }
}

fn called(target: &Target<'_>) -> String {
    let (kind, name) = (&target.resource.kind, target.name);
    match target.namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

fn refused(error: RequestError, target: &Target<'_>) -> Failure {
    let said = format!("could not write to {}", called(target));
    Failure::new(anyhow!(error).context(said))
        .hint(format!("your account needs to `patch` {}", target.resource.plural))
}
