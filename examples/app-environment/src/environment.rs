//! The resource: an application with its stages, and its status.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything that an application needs to run in a shared cluster.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "AppEnvironment")]
#[kube(status = "EnvironmentStatus", shortname = "appenv")]
#[kube(printcolumn = r#"{"name": "Team", "type": "string", "jsonPath": ".spec.team"}"#)]
#[kube(printcolumn = r#"{"name": "Ready", "type": "string",
    "jsonPath": ".status.conditions[?(@.type=='Ready')].status"}"#)]
pub struct AppEnvironmentSpec {
    /// The group of users who may work in the namespaces.
    pub team: String,
    /// One namespace each, such as `dev` and `prod`.
    #[schemars(length(min = 1))]
    pub stages: Vec<String>,
    /// The limits of each namespace.
    pub quota: Quota,
}

/// The limits of a namespace.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub struct Quota {
    /// Processors, such as `4` or `500m`.
    pub cpu: String,
    /// Memory, such as `8Gi`.
    pub memory: String,
}

/// The status of an environment.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct EnvironmentStatus {
    /// The specification from which the environment was last provisioned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Inputs>,
    /// The objects in the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<Provisioned>,
    /// The framework sets `Ready` from the children; the handler sets `Provisioned`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Value>,
}

/// The specification from which an environment was provisioned.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Inputs {
    /// The generation of the specification.
    pub generation: i64,
    /// Its team.
    pub team: String,
    /// Its stages.
    pub stages: Vec<String>,
    /// Its limits.
    pub quota: Quota,
}

/// The objects in the registry.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub struct Provisioned {
    /// The organisation.
    pub org: String,
    /// Its repositories.
    pub repos: Vec<String>,
    /// Its team.
    pub team: String,
    /// The user that pulls images.
    pub user: String,
}

impl Inputs {
    pub(crate) fn of(environment: &AppEnvironment) -> Self {
        let AppEnvironmentSpec { team, stages, quota } = environment.spec.clone();
        let generation = environment.metadata.generation.unwrap_or_default();
        Self { generation, team, stages, quota }
    }
}

impl Provisioned {
    /// The desired objects.
    pub(crate) fn of(environment: &AppEnvironment) -> Self {
        let org = environment.metadata.name.clone().unwrap_or_default();
        Self {
            repos: environment.spec.stages.clone(),
            team: "developers".into(),
            user: format!("{org}-puller"),
            org,
        }
    }

    pub(crate) fn org_path(&self) -> String {
        format!("/orgs/{}", self.org)
    }

    pub(crate) fn repo_path(&self, repo: &str) -> String {
        format!("/orgs/{}/repos/{repo}", self.org)
    }

    pub(crate) fn team_path(&self) -> String {
        format!("/orgs/{}/teams/{}", self.org, self.team)
    }

    pub(crate) fn user_path(&self) -> String {
        format!("/users/{}", self.user)
    }
}

fn conditions(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "array", "items": {
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
    }})
}
