//! Objects of a world as JSON, for resources without a type.

use http::{Method, StatusCode};
use kopf_client::{Cluster, Policy};
use kopf_model::Resource;
use serde_json::Value;

use super::World;
use crate::account::NAMESPACE;
use crate::error::WorldError;
use crate::rest::{group_version_of, path, send};

/// The objects of one resource, as JSON.
///
/// ```
/// # use serde_json::json;
/// kopf_testing::run(|world| async move {
///     let maps = world.objects("configmaps.v1");
///     maps.create(&json!({"metadata": {"name": "a"}, "data": {"key": "value"}})).await?;
///     maps.patch("a", &json!({"data": {"key": "other"}})).await?;
///     assert_eq!(maps.get("a").await?["data"]["key"], "other");
///     Ok::<(), kopf_testing::WorldError>(())
/// }).expect("nothing is refused");
/// ```
#[derive(Clone)]
pub struct DynamicApi {
    world: World,
    group_version: String,
    plural: String,
    /// Empty for cluster-scoped resources.
    namespace: String,
}

impl World {
    /// The objects of a resource, given as `plural.version.group` or `plural.version`, in the
    /// default namespace.
    #[must_use]
    pub fn objects(&self, resource: &str) -> DynamicApi {
        let mut parts = resource.splitn(3, '.');
        let plural = parts.next().unwrap_or_default().to_owned();
        let version = parts.next().unwrap_or("v1");
        let group_version = match parts.next() {
            Some(group) => format!("{group}/{version}"),
            None => version.to_owned(),
        };
        DynamicApi { world: self.clone(), group_version, plural, namespace: NAMESPACE.to_owned() }
    }

    /// Applies a manifest of any kind server-side, as `kubectl apply --server-side` would.
    ///
    /// # Errors
    /// Fails if the server does not know the kind, or rejects the manifest.
    pub async fn apply(&self, manifest: &Value) -> Result<Value, WorldError> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group_version, kind) = (text(&manifest["apiVersion"]), text(&manifest["kind"]));
        let is_meant = |it: &&Resource| it.kind == kind && group_version_of(it) == group_version;
        let resources = self.resources().await?;
        let resource = resources.iter().find(is_meant);
        let resource =
            resource.ok_or_else(|| WorldError::Unknown(format!("{kind} of {group_version}")))?;
        let metadata = &manifest["metadata"];
        let namespace = match resource.namespaced {
            true => metadata["namespace"].as_str().unwrap_or(NAMESPACE),
            false => "",
        };
        let path = path(&group_version, namespace, &resource.plural, &text(&metadata["name"]));
        let path = format!("{path}?fieldManager=kopf-testing&force=true");
        self.send(Method::PATCH, &path, "application/apply-patch+yaml", manifest).await
    }

    /// All resources of the server.
    pub(crate) async fn resources(&self) -> Result<Vec<Resource>, WorldError> {
        let cluster = Cluster::with_client(self.client(), Policy::default());
        let discovered = cluster.discover(None).await;
        discovered
            .map(|discovered| discovered.resources)
            .map_err(|error| WorldError::Refused(kube::Error::Service(error.into())))
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<Value, WorldError> {
        send(&self.client(), method, path, content_type, body).await
    }
}

impl DynamicApi {
    /// The same resource in another namespace.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        self
    }

    /// Selects a cluster-scoped resource, or all namespaces for [`DynamicApi::list`].
    #[must_use]
    pub fn in_cluster(mut self) -> Self {
        self.namespace.clear();
        self
    }

    /// Creates an object; `apiVersion` and `kind` may be omitted.
    ///
    /// # Errors
    /// Fails if the server rejects it.
    pub async fn create(&self, object: &Value) -> Result<Value, WorldError> {
        let mut object = object.clone();
        if !object["kind"].is_string() {
            let resources = self.world.resources().await?;
            let is_meant = |it: &&Resource| {
                it.plural == self.plural && group_version_of(it) == self.group_version
            };
            let resource = resources.iter().find(is_meant);
            let resource = resource.ok_or_else(|| WorldError::Unknown(self.plural.clone()))?;
            object["apiVersion"] = self.group_version.clone().into();
            object["kind"] = resource.kind.clone().into();
        }
        self.send(Method::POST, "", "application/json", &object).await
    }

    /// Reads an object.
    ///
    /// # Errors
    /// Fails if it does not exist.
    pub async fn get(&self, name: &str) -> Result<Value, WorldError> {
        self.send(Method::GET, name, "application/json", &Value::Null).await
    }

    /// Reads all objects.
    ///
    /// # Errors
    /// Fails if the server has no such resource.
    pub async fn list(&self) -> Result<Vec<Value>, WorldError> {
        let mut list = self.send(Method::GET, "", "application/json", &Value::Null).await?;
        Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    /// Changes an object with a merge patch.
    ///
    /// # Errors
    /// Fails if the server rejects it.
    pub async fn patch(&self, name: &str, patch: &Value) -> Result<Value, WorldError> {
        self.send(Method::PATCH, name, "application/merge-patch+json", patch).await
    }

    /// Requests the deletion of an object.
    ///
    /// # Errors
    /// Fails if it does not exist.
    pub async fn delete(&self, name: &str) -> Result<(), WorldError> {
        self.send(Method::DELETE, name, "application/json", &Value::Null).await.map(drop)
    }

    /// Waits until an object meets a condition, and returns it.
    ///
    /// # Errors
    /// Fails if it does not within ten minutes of virtual time.
    pub async fn until(
        &self,
        name: &str,
        what: &str,
        condition: impl Fn(&Value) -> bool,
    ) -> Result<Value, WorldError> {
        let what = format!("{what} of {} {name}", self.plural);
        let found = self.world.until_seen(&what, async || {
            let object = self.read(name).await?;
            Ok(if condition(&object) { Ok(object) } else { Err(object.to_string()) })
        });
        found.await
    }

    /// Waits until an object does not exist.
    ///
    /// # Errors
    /// Fails if it still exists after ten minutes of virtual time.
    pub async fn until_gone(&self, name: &str) -> Result<(), WorldError> {
        self.until(name, "the end", Value::is_null).await.map(drop)
    }

    /// The object, or null.
    async fn read(&self, name: &str) -> Result<Value, kube::Error> {
        match self.get(name).await {
            Ok(object) => Ok(object),
            Err(WorldError::Refused(kube::Error::Api(status)))
                if status.code == StatusCode::NOT_FOUND.as_u16() =>
            {
                Ok(Value::Null)
            }
            Err(WorldError::Refused(error)) => Err(error),
            Err(other) => Err(kube::Error::Service(other.into())),
        }
    }

    async fn send(
        &self,
        method: Method,
        name: &str,
        content_type: &str,
        body: &Value,
    ) -> Result<Value, WorldError> {
        let path = path(&self.group_version, &self.namespace, &self.plural, name);
        self.world.send(method, &path, content_type, body).await
    }
}
