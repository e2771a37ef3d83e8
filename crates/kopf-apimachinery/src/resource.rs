//! The served resources: one [`ResourceInfo`] per group, version and resource.
//!
//! Plain data, created by `registry` from the recorded discovery data and from CRDs.

use std::sync::Arc;

use serde_json::Value;

use crate::schema::Schema;

pub use crate::api_version::{join_api_version, split_api_version};

/// One served resource in one version.
#[derive(Debug, Clone)]
pub struct ResourceInfo {
    /// The API group, empty for the core group.
    pub group: String,
    /// The served version.
    pub version: String,
    /// The plural name, as in paths.
    pub resource: String,
    /// The singular name.
    pub singular: String,
    /// The kind of the objects.
    pub kind: String,
    /// The kind of the lists.
    pub list_kind: String,
    /// Whether the objects live in namespaces.
    pub namespaced: bool,
    /// The verbs on the main resource.
    pub verbs: Vec<String>,
    /// Short names for command-line tools.
    pub short_names: Vec<String>,
    /// Categories, such as `all`.
    pub categories: Vec<String>,
    /// The subresources.
    pub subresources: Vec<Subresource>,
    /// The key of the table that holds the objects, `resource` or `resource.group`.
    /// Core events and `events.k8s.io` share one table.
    pub table: Arc<str>,
    /// The version in which objects are stored.
    pub storage_version: String,
    /// Properties of the CRD behind the resource; `None` for built-in resources.
    pub custom: Option<Arc<CustomResource>>,
    /// The schema of this version, if one is known.
    pub schema: Option<Arc<Schema>>,
}

/// One subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subresource {
    /// The last path segment, such as `status`.
    pub name: String,
    /// The group of its kind if it differs from the resource's.
    pub group: String,
    /// The version of its kind if it differs from the resource's.
    pub version: String,
    /// The kind that it reads and writes.
    pub kind: String,
    /// Its verbs.
    pub verbs: Vec<String>,
}

/// The properties of a CRD for one version.
#[derive(Debug, Clone, Default)]
pub struct CustomResource {
    /// The name of the CRD.
    pub crd_name: String,
    /// Whether the CRD is being deleted, so that creation is rejected.
    pub terminating: bool,
    /// `specReplicasPath`, `statusReplicasPath`, `labelSelectorPath` if scale is enabled.
    pub scale: Option<ScalePaths>,
    /// The JSON paths of selectable fields, such as `.spec.color`.
    pub selectable_fields: Vec<String>,
    /// `additionalPrinterColumns` of the version.
    pub printer_columns: Vec<Value>,
    /// The warning for a deprecated version.
    pub deprecation_warning: Option<String>,
    /// The names of all versions of the CRD, served or not.
    pub versions: Vec<String>,
    /// `spec.conversion.webhook` of the CRD if its strategy is Webhook.
    pub conversion_webhook: Option<Value>,
    /// `spec.preserveUnknownFields`.
    pub preserve_unknown_fields: bool,
    /// The generation of the CRD.
    pub generation: i64,
    /// The version of the store at which the specification of the CRD last changed; 0 if never.
    pub changed_at: u64,
    /// Which stored objects may lack defaults of the current schema.
    pub undefaulted: Undefaulted,
}

/// Which stored objects may lack defaults that clients expect to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undefaulted {
    /// Objects older than this version of the store; the schema has changed since then.
    Before(u64),
    /// All objects: some are stored before their defaults are filled in.
    All,
}

impl Default for Undefaulted {
    fn default() -> Self {
        Self::Before(0)
    }
}

impl Undefaulted {
    /// Whether an object of this version may lack defaults.
    pub fn includes(self, resource_version: u64) -> bool {
        match self {
            Self::Before(version) => resource_version < version,
            Self::All => true,
        }
    }
}

/// Where a custom resource keeps its scale.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScalePaths {
    /// The JSON path of the desired replicas.
    pub spec_replicas: String,
    /// The JSON path of the observed replicas.
    pub status_replicas: String,
    /// The JSON path of the selector text, if any.
    pub label_selector: Option<String>,
}

impl ResourceInfo {
    /// `group/version`, or the bare version in the core group.
    pub fn api_version(&self) -> String {
        join_api_version(&self.group, &self.version)
    }

    /// The subresource with this name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether `/status` exists.
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// Whether the resource comes from a CRD.
    pub fn is_custom(&self) -> bool {
        self.custom.is_some()
    }

    /// Turns whole floats of custom resources into integers; call it after validation.
    pub fn settle_numbers(&self, object: &mut Value) {
        if self.is_custom() {
            crate::schema::settle_numbers(object);
        }
    }

    /// Whether the main resource has this verb.
    pub fn allows(&self, verb: &str) -> bool {
        self.verbs.iter().any(|allowed| allowed == verb)
    }
}
