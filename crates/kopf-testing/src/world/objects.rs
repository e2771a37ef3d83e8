//! Typed objects of a world: read, write, wait.

use std::fmt::Debug;
use std::time::Duration;

use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::World;
use crate::account::NAMESPACE;
use crate::error::WorldError;

/// The first pause between two checks; it grows.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The scope of objects of a type: the default namespace, or the cluster.
pub trait ObjectScope: Sized {
    /// All of them.
    fn api<K>(client: Client) -> Api<K>
    where
        K: Resource<Scope = Self>,
        K::DynamicType: Default;
}

impl ObjectScope for NamespaceResourceScope {
    fn api<K>(client: Client) -> Api<K>
    where
        K: Resource<Scope = Self>,
        K::DynamicType: Default,
    {
        Api::namespaced(client, NAMESPACE)
    }
}

impl ObjectScope for ClusterResourceScope {
    fn api<K>(client: Client) -> Api<K>
    where
        K: Resource<Scope = Self>,
        K::DynamicType: Default,
    {
        Api::all(client)
    }
}

impl World {
    /// The objects of a type: in the default namespace, or in the cluster.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource,
        K::Scope: ObjectScope,
        K::DynamicType: Default,
    {
        <K::Scope as ObjectScope>::api(self.client())
    }

    /// The objects of a type in a namespace.
    #[must_use]
    pub fn api_in<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client(), namespace)
    }

    /// Creates an object.
    ///
    /// # Errors
    /// Fails if the server rejects it.
    pub async fn create<K>(&self, object: &K) -> Result<K, WorldError>
    where
        K: Resource + Clone + Debug + Serialize + DeserializeOwned,
        K::Scope: ObjectScope,
        K::DynamicType: Default,
    {
        Ok(self.api().create(&PostParams::default(), object).await?)
    }

    /// Reads an object.
    ///
    /// # Errors
    /// Fails if it does not exist.
    pub async fn get<K>(&self, name: &str) -> Result<K, WorldError>
    where
        K: Resource + Clone + Debug + DeserializeOwned,
        K::Scope: ObjectScope,
        K::DynamicType: Default,
    {
        Ok(self.api().get(name).await?)
    }

    /// Reads all objects of a type.
    ///
    /// # Errors
    /// Fails if the server has no such resource.
    pub async fn list<K>(&self) -> Result<Vec<K>, WorldError>
    where
        K: Resource + Clone + Debug + DeserializeOwned,
        K::Scope: ObjectScope,
        K::DynamicType: Default,
    {
        Ok(self.api().list(&ListParams::default()).await?.items)
    }

    /// Changes an object with a merge patch.
    ///
    /// # Errors
    /// Fails if the server rejects it.
    pub async fn patch<K>(&self, name: &str, patch: &Value) -> Result<K, WorldError>
    where
        K: Resource + Clone + Debug + DeserializeOwned,
        K::Scope: ObjectScope,
        K::DynamicType: Default,
    {
        Ok(self.api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
    }

    /// Requests the deletion of an object.
    ///
    /// # Errors
    /// Fails if it does not exist.
    pub async fn delete<K>(&self, name: &str) -> Result<(), WorldError>
    where
        K: Resource + Clone + Debug + DeserializeOwned,
        K::Scope: ObjectScope,
        K::DynamicType: Default,
    {
        self.api::<K>().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until an object meets a condition, and returns it.
    ///
    /// # Errors
    /// Fails if it does not within ten minutes of virtual time.
    pub async fn until<K>(
        &self,
        name: &str,
        what: &str,
        condition: impl Fn(&K) -> bool,
    ) -> Result<K, WorldError>
    where
        K: Resource + Clone + Debug + DeserializeOwned,
        K::Scope: ObjectScope,
        K::DynamicType: Default,
    {
        let api = self.api::<K>();
        self.until_seen(&format!("{what} of {name}"), async || match api.get_opt(name).await? {
            Some(object) if condition(&object) => Ok(Ok(object)),
            other => Ok(Err(format!("{other:?}"))),
        })
        .await
    }

    /// Waits until an object does not exist.
    ///
    /// # Errors
    /// Fails if it still exists after ten minutes of virtual time.
    pub async fn until_gone<K>(&self, name: &str) -> Result<(), WorldError>
    where
        K: Resource + Clone + Debug + DeserializeOwned,
        K::Scope: ObjectScope,
        K::DynamicType: Default,
    {
        let api = self.api::<K>();
        self.until_seen(&format!("the end of {name}"), async || {
            Ok(api.get_opt(name).await?.map_or(Ok(()), |object| Err(format!("{object:?}"))))
        })
        .await
    }

    /// Waits until all objects of a type together meet a condition, and returns them.
    ///
    /// # Errors
    /// Fails if they do not within ten minutes of virtual time.
    pub async fn until_all<K>(
        &self,
        what: &str,
        condition: impl Fn(&[K]) -> bool,
    ) -> Result<Vec<K>, WorldError>
    where
        K: Resource + Clone + Debug + DeserializeOwned,
        K::Scope: ObjectScope,
        K::DynamicType: Default,
    {
        let api = self.api::<K>();
        self.until_seen(what, async || {
            let items = api.list(&ListParams::default()).await?.items;
            Ok(if condition(&items) { Ok(items) } else { Err(format!("{items:?}")) })
        })
        .await
    }

    /// Waits until a check of the world returns a value; checks again when the world has changed.
    pub(crate) async fn until_seen<T>(
        &self,
        what: &str,
        look: impl AsyncFn() -> Result<Result<T, String>, kube::Error>,
    ) -> Result<T, WorldError> {
        let patience = self.patience();
        let deadline = tokio::time::Instant::now() + patience;
        let mut pause = FIRST_PAUSE;
        let mut seen = None;
        let mut last = String::new();
        loop {
            let version = self.server().resource_version();
            if seen != Some(version) {
                seen = Some(version);
                match look().await? {
                    Ok(value) => return Ok(value),
                    Err(text) => last = text,
                }
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(WorldError::Never { what: what.to_owned(), patience, last });
            }
            tokio::time::sleep(pause).await;
            pause = pause.mul_f64(1.05).min(LONGEST_PAUSE);
        }
    }
}
