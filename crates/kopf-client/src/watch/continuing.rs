//! Starts a watch from a known version instead of a list.
//!
//! First checks whether the server is still the remembered one: its version must not be older, and
//! the first object of the collection must be a known or a newer one. Objects that must be handled
//! again are fetched by name. If anything is wrong, the collection is listed.

use std::sync::Arc;

use futures::future::join_all;
use kopf_model::{Object, Version};

use super::{Closed, Observation, Page, RESUME_ATTEMPTS_MAX, Watcher, completed, malformed};
use crate::address;
use crate::error::RequestError;

/// How many objects are fetched at the same time.
const FETCHED_AT_ONCE_MAX: usize = 8;

/// The remembered data of a collection.
#[derive(Clone)]
pub struct Remembered {
    /// All changes up to this version are known.
    pub version: u64,
    /// The objects to fetch: namespace and name.
    pub wanted: Vec<(Option<String>, String)>,
    /// Whether an object, in any state, is one of the known ones.
    pub is_known: Arc<dyn Fn(&Object) -> bool + Send + Sync>,
}

impl<T: Clone + Send + Sync + 'static> Watcher<T> {
    /// Lets the watch start with remembered data, if the server matches it.
    #[must_use]
    pub fn remembering(mut self, remembered: Option<Remembered>) -> Self {
        self.remembered = remembered;
        self
    }

    /// Follows the collection from remembered data until a list is needed.
    pub(super) async fn begin_with_remembered(&mut self) -> Result<(), Closed> {
        match self.recall().await? {
            Some(version) => self.follow(version).await,
            None => Ok(()),
        }
    }

    /// The version to continue from, unless the collection must be listed.
    async fn recall(&mut self) -> Result<Option<String>, Closed> {
        let Some(remembered) = self.remembered.take() else { return Ok(None) };
        while self.failures < RESUME_ATTEMPTS_MAX {
            match self.compare(&remembered).await {
                Ok(Ok(fetched)) => {
                    self.failures = 0;
                    let version = remembered.version.to_string();
                    self.batch.push(Observation::Continued { version: version.clone() });
                    self.batch.extend(fetched.into_iter().map(Observation::Listed));
                    self.flush().await?;
                    return Ok(Some(version));
                }
                Ok(Err(difference)) => {
                    let collection = &self.collection;
                    tracing::info!(%collection, "the snapshot is not used: {difference}");
                    return Ok(None);
                }
                Err(error) => self.pause(error).await?,
            }
        }
        Ok(None)
    }

    /// The objects that must be handled again, or why the server is not the remembered one.
    async fn compare(
        &self,
        remembered: &Remembered,
    ) -> Result<Result<Vec<Object>, &'static str>, RequestError> {
        let mut path = self.path(None);
        address::push_query(&mut path, "limit", "1");
        let (version, objects) = self.first_page(path).await?;
        let known = Version::from_number(remembered.version);
        if Version::parse(&version) < known {
            return Ok(Err("the server is at an older version"));
        }
        let is_newer = |object: &Object| Version::of(object) > known;
        if objects.iter().any(|object| !is_newer(object) && !(remembered.is_known)(object)) {
            return Ok(Err("the server has other objects"));
        }
        let mut fetched = Vec::with_capacity(remembered.wanted.len());
        for wanted in remembered.wanted.chunks(FETCHED_AT_ONCE_MAX) {
            let mut fetching = Vec::with_capacity(wanted.len());
            for (namespace, name) in wanted {
                fetching.push(self.first_page(self.path_to(namespace.as_deref(), name)));
            }
            for answer in join_all(fetching).await {
                let (_, objects) = answer?;
                fetched.extend(objects);
            }
        }
        Ok(Ok(fetched))
    }

    /// The path of a list of one object, for which the rights of the watch are enough; the list is
    /// empty if the object is gone or no longer in the collection.
    fn path_to(&self, namespace: Option<&str>, name: &str) -> String {
        let it = &self.collection;
        let mut path = address::collection(&it.resource, namespace);
        let field = format!("metadata.name={name}");
        let fields = match &it.field_selector {
            Some(others) => format!("{others},{field}"),
            None => field,
        };
        address::push_query(&mut path, "fieldSelector", &fields);
        for (parameter, selector) in
            [("labelSelector", &it.label_selector), ("shardSelector", &it.shard_selector)]
        {
            if let Some(selector) = selector {
                address::push_query(&mut path, parameter, selector);
            }
        }
        path
    }

    async fn first_page(&self, path: String) -> Result<(String, Vec<Object>), RequestError> {
        let bytes = self.page(path.clone()).await?;
        let page: Page<'_> = serde_json::from_slice(&bytes)
            .map_err(|error| malformed(&path, "the list could not be read", error))?;
        let item_kind = page.kind.strip_suffix("List").unwrap_or_default();
        let read = |raw: &[u8]| {
            self.object(raw)
                .and_then(|object| completed(object, &page.api_version, item_kind))
                .map_err(|error| malformed(&path, "an item could not be read", error))
        };
        let items = page.items.unwrap_or_default();
        let objects = items.iter().map(|item| read(item.get().as_bytes()));
        let objects = objects.collect::<Result<_, _>>()?;
        Ok((page.metadata.resource_version, objects))
    }
}
