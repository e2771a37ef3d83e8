//! The resources of the cluster, with cached discovery.

use std::sync::Arc;
use std::time::Duration;

use kopf_client::{Cluster, RequestError};
use kopf_engine::journal::resource_name;
use kopf_model::Resource;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long a response is cached.
const KEPT: Duration = Duration::from_secs(15);

/// The resources of one response.
type Resources = Arc<Vec<Arc<Resource>>>;

/// The resources that the cluster serves.
pub(crate) struct Kinds {
    cluster: Cluster,
    /// Updated by the request that finds it outdated, read by the others.
    known: Mutex<Option<(Instant, Resources)>>,
}

impl Kinds {
    pub(crate) fn new(cluster: Cluster) -> Self {
        Self { cluster, known: Mutex::default() }
    }

    /// All resources.
    pub(crate) async fn all(&self) -> Result<Resources, RequestError> {
        let mut known = self.known.lock().await;
        if let Some((at, resources)) = &*known
            && at.elapsed() < KEPT
        {
            return Ok(Arc::clone(resources));
        }
        let discovered = self.cluster.discover(None).await?;
        let resources = Arc::new(discovered.resources.into_iter().map(Arc::new).collect());
        *known = Some((Instant::now(), Arc::clone(&resources)));
        Ok(resources)
    }

    /// The resource with a name such as `plural.group`, in the preferred version.
    pub(crate) async fn named(&self, name: &str) -> Result<Option<Arc<Resource>>, RequestError> {
        let resources = self.all().await?;
        let mut named: Vec<_> = resources.iter().filter(|it| resource_name(it) == name).collect();
        named.sort_by_key(|resource| !resource.preferred);
        Ok(named.first().map(|resource| Arc::clone(resource)))
    }

    /// The resource of a watch, in the form `plural.version.group`.
    pub(crate) async fn watched(&self, name: &str) -> Result<Option<Arc<Resource>>, RequestError> {
        let resources = self.all().await?;
        let mut parts = name.splitn(3, '.');
        let (plural, version) =
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let group = parts.next().unwrap_or_default();
        let is_meant =
            |it: &&Arc<Resource>| it.plural == plural && it.version == version && it.group == group;
        Ok(resources.iter().find(is_meant).map(Arc::clone))
    }

    /// Clears the cache.
    pub(crate) async fn forget(&self) {
        *self.known.lock().await = None;
    }
}
