//! The verbs on objects, independent of HTTP.
//!
//! Used by all transports. A [`Call`] describes the request; the functions of the submodules
//! execute it and return stored objects, which `pipeline` encodes.

mod admit;
mod create;
mod definitions;
mod delete;
mod generation;
mod list;
mod managers;
mod object;
mod patch;
mod scale;
mod update;
mod verdict;
mod watch;

use std::sync::Arc;

use serde_json::Value;

use crate::admission::{AdmissionRequest, Operation};
use crate::apply::Manager;
use crate::kinds::KindContext;
use crate::query::WriteOptions;
use crate::rbac;
use crate::request::RequestInfo;
use crate::resource::ResourceInfo;
use crate::state::Inner;
use crate::store::{Batch, Change as StoreChange, Refused};
use crate::{StatusError, Stored, User};

pub(crate) use create::create;
pub(crate) use delete::{DeleteRequest, Deleted, delete, delete_collection};
pub(crate) use list::{ListRequest, list, parse_version, read_version};
pub(crate) use object::{check_object, typed};
pub(crate) use patch::{PatchKind, patch};
pub(crate) use scale::{
    apply as apply_scale, check_patched as check_patched_scale, check_type as check_scale,
    read as read_scale, write as write_scale,
};
pub(crate) use update::{Change, Made, update, update_with};
pub(crate) use watch::{WatchRequest, watch};

/// One request to be executed.
pub(crate) struct Call {
    /// The server.
    pub(crate) inner: Arc<Inner>,
    /// The requesting user.
    pub(crate) user: Arc<User>,
    /// The resource in the requested version.
    pub(crate) resource: Arc<ResourceInfo>,
    /// The attributes of the request.
    pub(crate) info: Arc<RequestInfo>,
    /// Dry run, field manager, field validation, force.
    pub(crate) options: WriteOptions,
    /// The field manager if the options name none.
    pub(crate) default_manager: String,
    /// Whether managed fields are already up to date, as after an apply.
    pub(crate) tracked: bool,
    /// Whether the server itself makes this write as a consequence of another one.
    pub(crate) nested: bool,
    /// Whether the uid and the creation time of the given object are kept, as when a snapshot is
    /// loaded.
    pub(crate) keeps_identity: bool,
    /// The kind in the body of a custom resource, if it is the wrong one.
    pub(crate) wrong_kind: Option<String>,
    /// The body as sent, for error messages that quote it.
    pub(crate) raw_body: bytes::Bytes,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
    /// Annotations for the audit log.
    pub(crate) annotations: Vec<(String, String)>,
    /// The last batch of changes that this call has read before it was durable.
    pub(crate) observed: Option<Arc<Batch>>,
}

impl Call {
    /// The namespace of the stored object: empty for cluster-scoped resources.
    pub(crate) fn namespace(&self) -> &str {
        if self.resource.namespaced { &self.info.namespace } else { "" }
    }

    /// The current state of the object that the call names, if it exists.
    fn find(&self) -> Option<Arc<Stored>> {
        self.inner.store.get(&self.resource.table, self.namespace(), &self.info.name)
    }

    /// The newest state of the object that the call names, which may not be durable yet.
    fn find_newest(&mut self) -> Option<Arc<Stored>> {
        let namespace = if self.resource.namespaced { &self.info.namespace } else { "" };
        let store = &self.inner.store;
        let (found, batch) = store.head(&self.resource.table, namespace, &self.info.name);
        self.observe(batch);
        found
    }

    /// Records that the outcome of this call depends on a batch.
    fn observe(&mut self, batch: Option<Arc<Batch>>) {
        if batch.is_some() {
            self.observed = Batch::later(self.observed.take(), batch);
        }
    }

    /// Returns an outcome once everything that it depends on is durable.
    async fn confirm<T, E: From<StatusError>>(&mut self, outcome: Result<T, E>) -> Result<T, E> {
        if let Some(batch) = self.observed.take() {
            batch.wait().await.map_err(|reason| not_stored(&reason))?;
        }
        outcome
    }

    /// Commits a change and waits until it is published; `None` if another writer was faster.
    async fn commit(&self, change: StoreChange) -> Result<Option<Arc<Stored>>, StatusError> {
        let committed = match self.inner.store.commit_after(change, self.observed.as_deref()) {
            Ok(committed) => committed,
            Err(Refused::Raced) => return Ok(None),
            Err(Refused::Unavailable(reason)) => return Err(not_stored(&reason)),
        };
        if let Some(batch) = committed.batch {
            batch.wait().await.map_err(|reason| not_stored(&reason))?;
        }
        Ok(Some(committed.stored))
    }

    /// Rejects roles and bindings that grant more than the user holds.
    fn check_escalation(
        &self,
        path_name: &str,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), StatusError> {
        if self.inner.allows_all {
            return Ok(());
        }
        let write = rbac::Write {
            user: &self.user,
            table: &self.resource.table,
            namespace: self.namespace(),
            path_name,
            new,
            old,
        };
        rbac::check_escalation(&*self.inner.authorizer, &self.inner.store, &write)
    }

    /// The current state of the object that the call names, or a 404.
    pub(crate) fn read(&self) -> Result<Arc<Stored>, StatusError> {
        self.find().ok_or_else(|| self.not_found())
    }

    /// 404 for the object that the call names.
    pub(crate) fn not_found(&self) -> StatusError {
        StatusError::not_found(&self.resource.group, &self.resource.resource, &self.info.name)
    }

    /// 409 for the object that the call names.
    pub(crate) fn conflict(&self, problem: &str) -> StatusError {
        let resource = &self.resource;
        StatusError::conflict(&resource.group, &resource.resource, &self.info.name, problem)
    }

    /// 422 for an object of the resource.
    pub(crate) fn invalid(&self, name: &str, errors: &[crate::FieldError]) -> StatusError {
        // An alias is validated as the kind behind it.
        let is_alias = crate::convert::is_alias(&self.resource);
        let group = if is_alias { "" } else { &self.resource.group };
        StatusError::invalid(group, &self.resource.kind, name, errors)
    }

    /// The field manager.
    pub(crate) fn manager(&self) -> &str {
        if self.options.field_manager.is_empty() {
            &self.default_manager
        } else {
            &self.options.field_manager
        }
    }

    /// The manager that owns the fields written by this call.
    pub(crate) fn field_manager<'a>(&'a self, api_version: &'a str, time: &'a str) -> Manager<'a> {
        Manager {
            name: self.manager(),
            api_version,
            kind: &self.resource.kind,
            subresource: &self.info.subresource,
            has_status: self.resource.has_status(),
            has_versions: crate::convert::has_versions(&self.resource),
            time,
        }
    }

    /// The context for the kind's strategy.
    pub(crate) fn kind_context(&self) -> KindContext<'_> {
        KindContext {
            resource: &self.resource,
            subresource: &self.info.subresource,
            objects: &*self.inner.store,
            now: self.inner.clock.now(),
            ids: &*self.inner.ids,
            is_dry_run: self.options.dry_run,
        }
    }

    /// Updates custom resource definitions after a successful write.
    pub(crate) async fn after_write(&self) {
        if !self.nested && !self.options.dry_run {
            definitions::after_write(&self.inner, &self.resource, &self.info.name).await;
        }
    }

    /// An admission request without objects.
    pub(crate) fn admission<'a>(&'a self, operation: Operation) -> AdmissionRequest<'a> {
        let kind = match operation {
            Operation::Create => "CreateOptions",
            Operation::Update if self.info.verb == crate::Verb::Patch => "PatchOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
        };
        let mut options = serde_json::json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
        if self.options.dry_run {
            options["dryRun"] = serde_json::json!(["All"]);
        }
        if operation != Operation::Delete && !self.options.field_manager.is_empty() {
            options["fieldManager"] = serde_json::json!(self.options.field_manager);
        }
        AdmissionRequest {
            operation,
            resource: &self.resource,
            subresource: &self.info.subresource,
            namespace: &self.info.namespace,
            name: &self.info.name,
            user: &self.user,
            object: None,
            old_object: None,
            dry_run: self.options.dry_run,
            options,
            warnings: Vec::new(),
            annotations: Vec::new(),
        }
    }

    /// The attributes of the request, to be changed; the log and the audit trail keep theirs.
    pub(crate) fn info_mut(&mut self) -> &mut RequestInfo {
        Arc::make_mut(&mut self.info)
    }

    /// A call for another object, made by the server itself.
    pub(crate) fn internal(
        inner: &Arc<Inner>,
        resource: &Arc<ResourceInfo>,
        info: RequestInfo,
        manager: &str,
    ) -> Self {
        Self {
            inner: Arc::clone(inner),
            user: Arc::new(User::new("system:apiserver", ["system:masters"])),
            resource: Arc::clone(resource),
            info: Arc::new(info),
            options: WriteOptions::default(),
            default_manager: manager.to_owned(),
            tracked: false,
            nested: false,
            keeps_identity: false,
            wrong_kind: None,
            raw_body: bytes::Bytes::new(),
            warnings: Vec::new(),
            annotations: Vec::new(),
            observed: None,
        }
    }
}

/// How long clients should wait before they retry a write to a failed disk.
const DISK_RETRY_AFTER: u32 = 1;

/// 503 for a write that could not be stored and is not visible.
fn not_stored(reason: &str) -> StatusError {
    let message = format!("the write was not stored and has no effect: {reason}");
    let mut error = StatusError::new(503, "ServiceUnavailable", message).about("", "", "");
    if let Some(details) = &mut error.details {
        details.retry_after_seconds = DISK_RETRY_AFTER;
    }
    error
}
