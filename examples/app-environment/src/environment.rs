//! The resource: an application with its stages, and what was made of it.

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
pub(crate) struct AppEnvironmentSpec {
    /// The group of people who may work in the namespaces.
    pub(crate) team: String,
    /// One namespace each, such as `dev` and `prod`.
    #[schemars(length(min = 1))]
    pub(crate) stages: Vec<String>,
    /// The limits of each namespace.
    pub(crate) quota: Quota,
}

/// The limits of a namespace.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(crate) struct Quota {
    /// Processors, such as `4` or `500m`.
    pub(crate) cpu: String,
    /// Memory, such as `8Gi`.
    pub(crate) memory: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub(crate) struct EnvironmentStatus {
    /// What the environment was last provisioned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) inputs: Option<Inputs>,
    /// What exists in the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) registry: Option<Provisioned>,
    /// Written by the framework: how the children are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub(crate) conditions: Vec<Value>,
}

/// What an environment was provisioned from.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Inputs {
    pub(crate) generation: i64,
    pub(crate) team: String,
    pub(crate) stages: Vec<String>,
    pub(crate) quota: Quota,
}

/// What exists in the registry.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
pub(crate) struct Provisioned {
    pub(crate) org: String,
    pub(crate) repos: Vec<String>,
    pub(crate) team: String,
    pub(crate) user: String,
}

impl Inputs {
    pub(crate) fn of(environment: &AppEnvironment) -> Self {
        let AppEnvironmentSpec { team, stages, quota } = environment.spec.clone();
        let generation = environment.metadata.generation.unwrap_or_default();
        Self { generation, team, stages, quota }
    }
}

impl Provisioned {
    /// What should exist.
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
