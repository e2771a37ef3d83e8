//! The resources that the cluster serves: aggregated discovery in two requests, or legacy discovery
//! group by group.
//!
//! Not `kube`'s discovery: operators must know which versions could not be read, such as those of
//! an aggregated API that is down, and read only the groups of their handlers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _};
use kopf_model::Resource;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::cluster::Cluster;
use crate::error::{Failure, RequestError};
use crate::outgoing::Outgoing;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                          application/json";

/// How many group versions are requested at the same time in legacy discovery.
const CONCURRENT_MAX: usize = 16;

/// The timeout for single versions. They may belong to an aggregated API that is down, which a
/// request for all groups reports at once.
const VERSIONS_PATIENCE: Duration = Duration::from_secs(3);

/// A group and one of its versions.
pub type GroupVersion = (String, String);

/// The result of a discovery.
#[derive(Clone, Debug, Default)]
pub struct Discovered {
    /// All resources of the wanted groups.
    pub resources: Vec<Resource>,
    /// Group versions that could not be read, such as those of an aggregated API that is down.
    pub unavailable: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnyAnswer {
    kind: String,
    #[serde(deserialize_with = "or_default")]
    items: Vec<AggregatedGroup>,
    #[serde(deserialize_with = "or_default")]
    versions: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    groups: Vec<OldGroup>,
}

/// Parsed in two steps, since most operators need only a few groups.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AggregatedGroup {
    metadata: GroupMetadata,
    versions: Option<Box<RawValue>>,
}

impl AggregatedGroup {
    fn versions(&self) -> Result<Vec<AggregatedVersion>, serde_json::Error> {
        self.versions.as_ref().map_or(Ok(Vec::new()), |text| serde_json::from_str(text.get()))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GroupMetadata {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AggregatedVersion {
    version: String,
    #[serde(deserialize_with = "or_default")]
    resources: Vec<AggregatedResource>,
    freshness: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AggregatedResource {
    resource: String,
    #[serde(deserialize_with = "or_default")]
    response_kind: ResponseKind,
    scope: String,
    singular_resource: String,
    #[serde(deserialize_with = "or_default")]
    verbs: BTreeSet<String>,
    #[serde(deserialize_with = "or_default")]
    short_names: BTreeSet<String>,
    #[serde(deserialize_with = "or_default")]
    categories: BTreeSet<String>,
    #[serde(deserialize_with = "or_default")]
    subresources: Vec<AggregatedSubresource>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseKind {
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AggregatedSubresource {
    subresource: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OldGroup {
    name: String,
    #[serde(deserialize_with = "or_default")]
    versions: Vec<OldVersion>,
    preferred_version: OldVersion,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OldVersion {
    version: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OldList {
    #[serde(deserialize_with = "or_default")]
    resources: Vec<OldResource>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OldResource {
    name: String,
    singular_name: String,
    namespaced: bool,
    kind: String,
    #[serde(deserialize_with = "or_default")]
    verbs: BTreeSet<String>,
    #[serde(deserialize_with = "or_default")]
    short_names: BTreeSet<String>,
    #[serde(deserialize_with = "or_default")]
    categories: BTreeSet<String>,
}

impl Cluster {
    /// Discovers the resources of the wanted groups, or of all groups.
    ///
    /// A group that does not exist is absent from the result; one that cannot be read is listed
    /// there.
    ///
    /// # Errors
    /// Fails if the roots of the API cannot be read.
    #[inline(never)]
    pub fn discover<'a>(
        &'a self,
        groups: Option<&'a BTreeSet<String>>,
    ) -> BoxFuture<'a, Result<Discovered, RequestError>> {
        // On the heap, and compiled in this crate only.
        Box::pin(self.discover_groups(groups))
    }

    async fn discover_groups(
        &self,
        groups: Option<&BTreeSet<String>>,
    ) -> Result<Discovered, RequestError> {
        let wanted = |name: &str| groups.is_none_or(|groups| groups.contains(name));
        let core = wanted("");
        let named = groups.is_none_or(|groups| groups.iter().any(|name| !name.is_empty()));
        let (core, named) = futures::join!(self.root("/api", core), self.root("/apis", named));
        let (core, named) = (core?, named?);
        let mut discovered = Discovered::default();
        let mut old_versions = Vec::new();
        for answer in [core, named].into_iter().flatten() {
            for group in answer.items.iter().filter(|group| wanted(&group.metadata.name)) {
                let versions = group.versions().map_err(|error| unreadable("/apis", error))?;
                discovered.add_aggregated(&group.metadata.name, &versions);
            }
            for version in answer.versions {
                old_versions.push((String::new(), version, true));
            }
            for group in answer.groups.into_iter().filter(|group| wanted(&group.name)) {
                for version in group.versions {
                    let preferred = version.version == group.preferred_version.version;
                    old_versions.push((group.name.clone(), version.version, preferred));
                }
            }
        }
        let mut lists = stream::iter(old_versions)
            .map(|(group, version, preferred)| async move {
                let path = path_of(&group, &version);
                let list = self.ask::<OldList>(path, "application/json").await;
                (group, version, preferred, list)
            })
            .buffered(CONCURRENT_MAX);
        while let Some((group, version, preferred, list)) = lists.next().await {
            match list {
                Ok(list) => discovered.add_old(&group, &version, preferred, list),
                Err(error) if error.failure == Failure::NotFound => {}
                Err(error) => {
                    tracing::warn!(%error, group, version, "an API group could not be discovered");
                    discovered.unavailable.push(format!("{group}/{version}"));
                }
            }
        }
        drop(lists);
        Ok(discovered)
    }

    /// Discovers the resources of some group versions, which is much cheaper than a whole
    /// discovery.
    ///
    /// A version that does not exist is absent from the result. Existing ones count as preferred.
    /// If a version cannot be read, the whole groups are discovered instead.
    ///
    /// # Errors
    /// Fails if the roots of the API cannot be read either.
    #[inline(never)]
    pub fn discover_versions<'a>(
        &'a self,
        versions: &'a BTreeSet<GroupVersion>,
    ) -> BoxFuture<'a, Result<Discovered, RequestError>> {
        Box::pin(self.discover_only(versions))
    }

    async fn discover_only(
        &self,
        versions: &BTreeSet<GroupVersion>,
    ) -> Result<Discovered, RequestError> {
        let lists = versions.iter().map(|(group, version)| self.list_version(group, version));
        let lists = futures::future::try_join_all(lists);
        match tokio::time::timeout(VERSIONS_PATIENCE, lists).await {
            Ok(Ok(lists)) => {
                let mut discovered = Discovered::default();
                for ((group, version), list) in versions.iter().zip(lists) {
                    discovered.add_old(group, version, true, list);
                }
                Ok(discovered)
            }
            Ok(Err(_)) | Err(_) => {
                tracing::debug!(?versions, "versions could not be discovered; looking at groups");
                let groups = versions.iter().map(|(group, _)| group.clone()).collect();
                self.discover(Some(&groups)).await
            }
        }
    }

    /// The resources of one version, without retries; `None` if the version does not exist.
    async fn list_version(&self, group: &str, version: &str) -> Result<OldList, RequestError> {
        let outgoing = Outgoing::get(path_of(group, version));
        match self.fetch_at_once(&outgoing).await {
            Ok(bytes) => read(&outgoing.path, &bytes),
            Err(error) if error.failure == Failure::NotFound => Ok(OldList::default()),
            Err(error) => Err(error),
        }
    }

    async fn root(&self, path: &str, wanted: bool) -> Result<Option<AnyAnswer>, RequestError> {
        if !wanted {
            return Ok(None);
        }
        let answer: AnyAnswer = self.ask(path.to_owned(), AGGREGATED).await?;
        let known = ["APIGroupDiscoveryList", "APIVersions", "APIGroupList"];
        if !known.contains(&answer.kind.as_str()) {
            tracing::warn!(path, kind = answer.kind, "unexpected response to discovery");
        }
        Ok(Some(answer))
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        path: String,
        accept: &'static str,
    ) -> Result<T, RequestError> {
        let outgoing = Outgoing { accept, ..Outgoing::get(path) };
        let bytes = self.fetch(&outgoing).await?;
        read(&outgoing.path, &bytes)
    }
}

/// Reads a field that may be `null`: Go writes this for nil values.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn path_of(group: &str, version: &str) -> String {
    match group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    }
}

fn read<T: DeserializeOwned>(path: &str, bytes: &[u8]) -> Result<T, RequestError> {
    serde_json::from_slice(bytes).map_err(|error| unreadable(path, error))
}

fn unreadable(path: &str, error: serde_json::Error) -> RequestError {
    let message = "the answer to discovery could not be read".to_owned();
    let mut failed = RequestError::local(Failure::Malformed, &http::Method::GET, path, message);
    failed.source = Some(Box::new(error));
    failed
}

impl Discovered {
    fn add_aggregated(&mut self, group: &str, versions: &[AggregatedVersion]) {
        for (index, version) in versions.iter().enumerate() {
            if version.freshness == "Stale" {
                self.unavailable.push(format!("{group}/{}", version.version));
            }
            for resource in &version.resources {
                self.resources.push(Resource {
                    group: group.to_owned(),
                    version: version.version.clone(),
                    plural: resource.resource.clone(),
                    kind: resource.response_kind.kind.clone(),
                    singular: or_lowercase(
                        &resource.singular_resource,
                        &resource.response_kind.kind,
                    ),
                    shortcuts: resource.short_names.clone(),
                    categories: resource.categories.clone(),
                    subresources: resource
                        .subresources
                        .iter()
                        .map(|it| it.subresource.clone())
                        .collect(),
                    namespaced: resource.scope == "Namespaced",
                    // The server lists the preferred version first.
                    preferred: index == 0,
                    verbs: resource.verbs.clone(),
                });
            }
        }
    }

    fn add_old(&mut self, group: &str, version: &str, preferred: bool, list: OldList) {
        let mut subresources: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for resource in &list.resources {
            if let Some((plural, subresource)) = resource.name.split_once('/') {
                subresources.entry(plural.into()).or_default().insert(subresource.into());
            }
        }
        for resource in list.resources.into_iter().filter(|it| !it.name.contains('/')) {
            self.resources.push(Resource {
                group: group.to_owned(),
                version: version.to_owned(),
                subresources: subresources.remove(&resource.name).unwrap_or_default(),
                singular: or_lowercase(&resource.singular_name, &resource.kind),
                plural: resource.name,
                kind: resource.kind,
                shortcuts: resource.short_names,
                categories: resource.categories,
                namespaced: resource.namespaced,
                preferred,
                verbs: resource.verbs,
            });
        }
    }
}

fn or_lowercase(singular: &str, kind: &str) -> String {
    if singular.is_empty() { kind.to_lowercase() } else { singular.to_owned() }
}

#[cfg(test)]
mod tests;
