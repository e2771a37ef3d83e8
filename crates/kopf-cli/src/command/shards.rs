//! `kopf shards`: which replica has which share of the objects.
//!
//! Reads the Leases of the replicas, which needs only the right to list Leases; the replicas
//! themselves are not asked.

mod table;

use anyhow::{Context, anyhow};
use clap::Args;
use kopf_client::Cluster;
use kopf_model::lease::LEADER_LABEL;
use kopf_model::shards::GROUP_LABEL;
use kopf_model::{Object, Resource};
use serde_json::Value;

use super::connection;
use super::explain;
use super::output::Output;
use crate::failure::Failure;
use table::Group;

/// How many objects are requested at a time.
const PAGE: u32 = 500;

/// The arguments of `kopf shards`.
#[derive(Args)]
pub(super) struct Arguments {
    /// The name of the operator, or of `--leader-elect`; by default all that share objects
    name: Option<String>,
    /// The namespace of the replicas; by default all namespaces
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Count the objects of this kind for every replica; also by plural or short name
    #[arg(short, long, value_name = "KIND")]
    resource: Option<String>,
    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// How to show it
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

/// Prints the table of members, ranges and objects.
pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let context = arguments.context.as_deref();
    let cluster = connection::cluster(context);
    cluster.connect().await.map_err(connection::no_login)?;
    let mut groups = groups(&cluster, arguments.namespace.as_deref()).await.map_err(|error| {
        Failure::new(error).hint("your account needs to `list` leases of coordination.k8s.io")
    })?;
    groups.retain(|group| arguments.name.as_ref().is_none_or(|name| *name == group.name));
    if groups.is_empty() {
        return Err(Failure::new(anyhow!("no replicas share objects here"))
            .hint("start them with `--shards auto`; check the name and the namespace (`-n`)"));
    }
    if let Some(kind) = &arguments.resource {
        let resource = explain::find(&cluster, kind, context).await?;
        let objects = list(&cluster, &collection(&resource), &format!("limit={PAGE}")).await?;
        for group in &mut groups {
            group.count(&objects);
        }
    }
    let documents: Vec<Value> = groups.iter().map(Group::document).collect();
    if let Some(text) = arguments.output.text(&documents.into())? {
        print!("{text}");
        return Ok(());
    }
    let now = jiff::Timestamp::now();
    let texts: Vec<String> = groups.iter().map(|group| group.render(now)).collect();
    print!("{}", texts.join("\n"));
    Ok(())
}

/// The replica that has an object, for every group that shares objects or elects a leader; empty if
/// there is none, or if the Leases cannot be read.
pub(super) async fn owners(cluster: &Cluster, object: &Object) -> String {
    let groups = groups(cluster, None).await.unwrap_or_default();
    let now = jiff::Timestamp::now();
    let mut text: String = groups.iter().map(|group| group.owner_line(object, now)).collect();
    let leaders = leases(cluster, None, LEADER_LABEL).await.unwrap_or_default();
    text.extend(leaders.iter().map(|lease| table::leader_line(lease, now)));
    text
}

async fn groups(cluster: &Cluster, namespace: Option<&str>) -> anyhow::Result<Vec<Group>> {
    Ok(table::groups(&leases(cluster, namespace, GROUP_LABEL).await?))
}

/// The Leases with this label.
async fn leases(
    cluster: &Cluster,
    namespace: Option<&str>,
    label: &str,
) -> anyhow::Result<Vec<Value>> {
    let place = namespace.map(|it| format!("namespaces/{it}/")).unwrap_or_default();
    let path = format!("/apis/coordination.k8s.io/v1/{place}leases");
    let query = format!("labelSelector={}", label.replace('/', "%2F"));
    list(cluster, &path, &query).await.context("could not list the Leases")
}

fn collection(resource: &Resource) -> String {
    let Resource { group, version, plural, .. } = resource;
    let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
    format!("{root}/{version}/{plural}")
}

/// All items, page by page.
async fn list(cluster: &Cluster, path: &str, query: &str) -> anyhow::Result<Vec<Value>> {
    let client = cluster.client().await?;
    let (mut items, mut next) = (Vec::new(), String::new());
    loop {
        let request = http::Request::get(format!("{path}?{query}{next}")).body(Vec::new())?;
        let mut page: Value = client.request(request).await?;
        if let Value::Array(found) = page["items"].take() {
            items.extend(found);
        }
        match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
            Some(token) => next = format!("&continue={token}"),
            None => return Ok(items),
        }
    }
}
