//! The verbs: what happens to objects, independent of HTTP.
//!
//! Both doors end here. A [`Call`] says who asks for what; the functions of the submodules do it
//! and return stored objects, which `pipeline` encodes.

mod admit;
mod create;
mod delete;
mod generation;
mod list;
mod managers;
mod object;
mod patch;
mod scale;
mod update;
mod watch;

use std::sync::Arc;

use crate::admission::{AdmissionRequest, Operation};
use crate::apply::Manager;
use crate::kinds::KindContext;
use crate::query::WriteOptions;
use crate::request::RequestInfo;
use crate::resource::ResourceInfo;
use crate::server::Inner;
use crate::{LocalClient, StatusError, Stored, User};

pub(crate) use create::create;
pub(crate) use delete::{DeleteRequest, Deleted, delete, delete_collection};
pub(crate) use list::{ListRequest, list, parse_version, read_version};
pub(crate) use object::typed;
pub(crate) use patch::{PatchKind, patch};
pub(crate) use scale::{read as read_scale, write as write_scale};
pub(crate) use update::{Change, Made, update, update_with};
pub(crate) use watch::{WatchRequest, watch};

/// One request on its way through the verbs.
pub(crate) struct Call {
    /// The server.
    pub(crate) inner: Arc<Inner>,
    /// Who asks.
    pub(crate) user: Arc<User>,
    /// The resource in the requested version.
    pub(crate) resource: Arc<ResourceInfo>,
    /// What is asked for.
    pub(crate) info: RequestInfo,
    /// Dry run, field manager, field validation, force.
    pub(crate) options: WriteOptions,
    /// The field manager if the options name none.
    pub(crate) default_manager: String,
    /// Whether managed fields are already up to date, as after an apply.
    pub(crate) tracked: bool,
    /// Whether the server itself writes as a consequence of another write.
    pub(crate) nested: bool,
    /// Whether uid and creation time of the given object are kept, as when a world is loaded.
    pub(crate) keeps_identity: bool,
    /// The kind that the body of a custom resource names, if it is another one.
    pub(crate) wrong_kind: Option<String>,
    /// The body as sent, for messages that quote it.
    pub(crate) raw_body: bytes::Bytes,
    /// Warnings for the client.
    pub(crate) warnings: Vec<String>,
}

impl Call {
    /// The namespace of the stored object: empty for cluster-scoped resources.
    pub(crate) fn namespace(&self) -> &str {
        if self.resource.namespaced { &self.info.namespace } else { "" }
    }

    /// The present state of the object that the call names, if there is one.
    fn find(&self) -> Option<Arc<Stored>> {
        self.inner.store.get(&self.resource.table, self.namespace(), &self.info.name)
    }

    /// The present state of the object that the call names, or a 404.
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
        // An alias is judged as the kind behind it.
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

    /// Who owns what this call writes.
    pub(crate) fn field_manager<'a>(&'a self, api_version: &'a str, time: &'a str) -> Manager<'a> {
        Manager {
            name: self.manager(),
            api_version,
            kind: &self.resource.kind,
            subresource: &self.info.subresource,
            has_status: self.resource.has_status(),
            time,
        }
    }

    /// What strategies may look at.
    pub(crate) fn kind_context(&self) -> KindContext<'_> {
        KindContext {
            resource: &self.resource,
            subresource: &self.info.subresource,
            store: &self.inner.store,
            clock: &*self.inner.clock,
            ids: &*self.inner.ids,
        }
    }

    /// The in-process client that admission plugins use.
    pub(crate) fn local(&self) -> LocalClient {
        LocalClient::of_server(&self.inner)
    }

    /// What a successful write entails for custom resource definitions.
    pub(crate) async fn after_write(&self) {
        if !self.nested && !self.options.dry_run {
            crate::crd::after_write(&self.inner, &self.resource, &self.info.name).await;
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
        }
    }

    /// A call about another object, made by the server itself.
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
            info,
            options: WriteOptions::default(),
            default_manager: manager.to_owned(),
            tracked: false,
            nested: false,
            keeps_identity: false,
            wrong_kind: None,
            raw_body: bytes::Bytes::new(),
            warnings: Vec::new(),
        }
    }
}
