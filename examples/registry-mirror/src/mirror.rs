//! The resource: which registry to mirror, and how much of it to keep.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A mirror of a container registry inside the cluster.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "RegistryMirror", namespaced)]
#[kube(status = "RegistryMirrorStatus", shortname = "mirror")]
#[kube(printcolumn = r#"{"name": "Upstream", "type": "string", "jsonPath": ".spec.upstream"}"#)]
#[kube(printcolumn = r#"{"name": "Ready", "type": "string",
    "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#)]
pub struct RegistryMirrorSpec {
    /// The source of the images, such as `https://quay.io`.
    pub upstream: String,
    /// The maximum disk space of the mirror, such as `50Gi`.
    #[schemars(regex(pattern = r"^[1-9][0-9]*(Mi|Gi|Ti)$"))]
    pub storage: String,
}

/// The status of a mirror.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct RegistryMirrorStatus {
    /// Written by the framework: the state of the children.
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Value>,
}

/// Why an upstream cannot be mirrored.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidUpstream(String);

impl std::fmt::Display for InvalidUpstream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "spec.upstream must be an https:// address of a host, not {:?}", self.0)
    }
}

impl std::error::Error for InvalidUpstream {}

impl RegistryMirrorSpec {
    /// The address of the upstream, checked beyond what a schema can express.
    ///
    /// # Errors
    /// Fails if it is not the `https://` address of a host.
    pub fn upstream(&self) -> Result<&str, InvalidUpstream> {
        let host = self.upstream.strip_prefix("https://").unwrap_or_default();
        let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(InvalidUpstream(self.upstream.clone()));
        }
        Ok(&self.upstream)
    }
}

fn conditions(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "array", "items": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
    }})
}
