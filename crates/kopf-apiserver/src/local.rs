//! An in-process client: the same pipeline as HTTP requests, without encoding.
//!
//! Used by controllers, each with its own user and field manager. Objects are returned in their
//! storage version. Resources are named by table: `pods`, `deployments.apps`.

use std::sync::Arc;

use serde_json::Value;

use crate::clock::Clock;
use crate::decode::Decoded;
use crate::query::Query;
use crate::request::{RequestInfo, Verb};
use crate::resource::ResourceInfo;
use crate::rest::{self, Call, DeleteRequest, Deleted, PatchKind};
use crate::state::Inner;
use crate::store::Snapshot;
use crate::{StatusError, Stored, User, authorize};

/// An in-process client.
#[derive(Clone)]
pub struct LocalClient {
    inner: Arc<Inner>,
    user: Arc<User>,
    manager: Arc<str>,
}

/// A patch of one of the four types.
#[derive(Debug, Clone)]
pub enum Patch {
    /// JSON patch.
    Json(Value),
    /// Merge patch.
    Merge(Value),
    /// Strategic merge patch.
    Strategic(Value),
    /// Server-side apply; the flag is `force`, which takes over fields of other managers.
    Apply(Value, bool),
}

/// The address of one object.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The table, `resource` or `resource.group`.
    pub table: &'a str,
    /// The namespace, empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The subresource, empty for the main resource.
    pub subresource: &'a str,
}

impl<'a> Target<'a> {
    /// The main resource of an object.
    pub fn new(table: &'a str, namespace: &'a str, name: &'a str) -> Self {
        Self { table, namespace, name, subresource: "" }
    }

    /// The same object through a subresource.
    #[must_use]
    pub fn through(self, subresource: &'a str) -> Self {
        Self { subresource, ..self }
    }
}

/// Options of a deletion.
#[derive(Debug, Clone, Default)]
pub struct DeleteOptions {
    /// `Background`, `Foreground` or `Orphan`; empty means the default.
    pub propagation_policy: String,
    /// The grace period.
    pub grace_period_seconds: Option<i64>,
    /// Deletes the object only if it has this uid.
    pub uid: Option<String>,
    /// Deletes the object only if it has this version.
    pub resource_version: Option<String>,
}

impl LocalClient {
    pub(crate) fn new(inner: Arc<Inner>, user: User, manager: &str) -> Self {
        Self { inner, user: Arc::new(user), manager: manager.into() }
    }

    /// The same client for another user.
    #[must_use]
    pub fn acting_as(&self, user: User, manager: &str) -> Self {
        Self::new(Arc::clone(&self.inner), user, manager)
    }

    /// The current snapshot of the store, for cheap reads.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.inner.store.snapshot()
    }

    /// Watches the version of the newest snapshot.
    pub(crate) fn newest_version(&self) -> tokio::sync::watch::Receiver<u64> {
        self.inner.store.newest()
    }

    /// The server's clock.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// The resource behind a table, in its storage version.
    pub(crate) fn resource(&self, table: &str) -> Result<Arc<ResourceInfo>, StatusError> {
        self.inner.resource_of_table(table)
    }

    /// Every served resource, one entry per version.
    pub(crate) fn resources(&self) -> Vec<Arc<ResourceInfo>> {
        self.inner.resources()
    }

    /// Reads one object, in the version in which it is stored.
    pub async fn get(&self, target: Target<'_>) -> Result<Arc<Stored>, StatusError> {
        let resource = self.resource(target.table)?;
        self.inner
            .store
            .get(target.table, target.namespace, target.name)
            .ok_or_else(|| StatusError::not_found(&resource.group, &resource.resource, target.name))
    }

    /// Reads all objects of a table, or of one namespace of it, in key order, each in the version
    /// in which it is stored.
    pub async fn list(&self, table: &str, namespace: &str) -> Vec<Arc<Stored>> {
        self.snapshot().list(table, namespace).map(|(_, stored)| stored).collect()
    }

    /// Creates an object.
    pub async fn create(
        &self,
        table: &str,
        namespace: &str,
        object: Value,
    ) -> Result<Arc<Stored>, StatusError> {
        let mut call = self.call(Target::new(table, namespace, ""), Verb::Create)?;
        let object = rest::typed(&mut call, body(object))?;
        rest::create(&mut call, object).await
    }

    /// Replaces an object or a subresource of it.
    pub async fn update(
        &self,
        target: Target<'_>,
        object: Value,
    ) -> Result<Arc<Stored>, StatusError> {
        let mut call = self.call(target, Verb::Update)?;
        let object = rest::typed(&mut call, body(object))?;
        rest::update(&mut call, object).await.map(|(stored, _)| stored)
    }

    /// Binds a pod to the node that a Binding names.
    pub(crate) async fn bind(
        &self,
        namespace: &str,
        pod: &str,
        binding: &Value,
    ) -> Result<(), StatusError> {
        let target = Target::new("pods", namespace, pod).through("binding");
        let mut call = self.call(target, Verb::Create)?;
        crate::subresources::bind(&mut call, binding).await
    }

    /// Patches an object or a subresource of it.
    pub async fn patch(
        &self,
        target: Target<'_>,
        patch: Patch,
    ) -> Result<Arc<Stored>, StatusError> {
        let mut call = self.call(target, Verb::Patch)?;
        let (kind, value) = match patch {
            Patch::Json(value) => (PatchKind::Json, value),
            Patch::Merge(value) => (PatchKind::Merge, value),
            Patch::Strategic(value) => (PatchKind::Strategic, value),
            Patch::Apply(value, force) => {
                call.options.field_manager = self.manager.to_string();
                call.options.force = Some(force);
                (PatchKind::Apply, value)
            }
        };
        let (stored, _) = rest::patch(&mut call, kind, Ok(body(value))).await?;
        Ok(stored)
    }

    /// Deletes an object. The result is its last or its terminating state.
    pub async fn delete(
        &self,
        target: Target<'_>,
        options: DeleteOptions,
    ) -> Result<Arc<Stored>, StatusError> {
        let mut call = self.call(target, Verb::Delete)?;
        let request = DeleteRequest {
            propagation_policy: Some(options.propagation_policy).filter(|text| !text.is_empty()),
            grace_period_seconds: options.grace_period_seconds,
            uid: options.uid,
            resource_version: options.resource_version,
            ..DeleteRequest::default()
        };
        rest::delete(&mut call, &request).await.map(Deleted::into_object)
    }

    fn call(&self, target: Target<'_>, verb: Verb) -> Result<Call, StatusError> {
        let resource = self.resource(target.table)?;
        let info = RequestInfo {
            verb,
            group: resource.group.clone(),
            version: resource.version.clone(),
            resource: resource.resource.clone(),
            subresource: target.subresource.to_owned(),
            namespace: target.namespace.to_owned(),
            name: target.name.to_owned(),
        };
        authorize::authorize(&self.inner, &self.user, &info, &Query::default())?;
        let mut call = Call::internal(&self.inner, &resource, info, &self.manager);
        call.user = Arc::clone(&self.user);
        Ok(call)
    }
}

fn body(value: Value) -> Decoded {
    Decoded { value, duplicates: Vec::new() }
}
