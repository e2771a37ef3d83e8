//! What you learn: tenants; children across namespaces, and objects outside of the cluster.
mod children;
mod environment;
pub mod fake;
mod registry;

use k8s_openapi::api::core::v1::{Namespace, ResourceQuota, Secret, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kopf::children::Child;
use kopf::input::{Condition, Conditions};
use kopf::prelude::*;
use kube::ResourceExt as _;

pub use environment::{
    AppEnvironment, AppEnvironmentSpec, EnvironmentStatus, Inputs, Provisioned, Quota,
};
pub use registry::{Connect, Passwords, RegistryClient, RegistryError, Stream};

/// For each stage: a namespace with a quota, network rules, the team's rights and the pull secret.
#[kopf::on::desired(
    AppEnvironment,
    children(Namespace, ResourceQuota, NetworkPolicy, Role, RoleBinding, ServiceAccount, Secret),
    grants = [
        "get,list,watch,create,patch,delete pods",
        "get pods/log",
        "get,list,watch,create,patch,delete services",
        "get,list,watch,create,patch,delete configmaps",
        "get,list,watch,create,patch,delete deployments.apps",
        "get,list,watch,create,patch,delete jobs.batch",
    ]
)]
pub fn inside(environment: &AppEnvironment, passwords: State<Passwords>) -> Result<Vec<Child>> {
    let password = passwords.of(&environment.uid().unwrap_or_default());
    let mut all = Vec::new();
    for stage in &environment.spec.stages {
        all.extend(children::of_stage(environment, stage, &password));
    }
    Ok(all)
}

/// In the registry: an organisation with a repository per stage, a team, and a pull user.
#[kopf::on::create(AppEnvironment, backoff = "5s")]
#[kopf::on::update(AppEnvironment, backoff = "5s")]
#[kopf::on::resume(AppEnvironment, backoff = "5s")]
pub async fn outside(
    environment: &AppEnvironment,
    registry: State<RegistryClient>,
    passwords: State<Passwords>,
    status: &mut Status<EnvironmentStatus>,
    conditions: &mut Conditions,
) -> Result {
    let wanted = Provisioned::of(environment);
    let password = passwords.of(&environment.uid().unwrap_or_default());
    registry.ensure(&wanted.org_path(), &json!({})).await?;
    for repo in &wanted.repos {
        registry.ensure(&wanted.repo_path(repo), &json!({})).await?;
    }
    registry.ensure(&wanted.user_path(), &json!({"password": password})).await?;
    registry.ensure(&wanted.team_path(), &json!({"members": [wanted.user]})).await?;
    // Repositories of an earlier specification that this one does not have.
    for former in status.registry.iter().flat_map(|former| former.repos.clone()) {
        if !wanted.repos.contains(&former) {
            registry.remove(&wanted.repo_path(&former)).await?;
        }
    }
    // In addition to the framework's own `Ready`.
    conditions.set(Condition::new("Provisioned", true, "RegistryComplete"));
    status.inputs = Some(Inputs::of(environment));
    status.registry = Some(wanted);
    Ok(())
}

/// Removes everything from the registry, in reverse order.
#[kopf::on::delete(AppEnvironment, backoff = "5s")]
pub async fn farewell(environment: &AppEnvironment, registry: State<RegistryClient>) -> Result {
    let wanted = Provisioned::of(environment);
    let former = environment.status.as_ref().and_then(|status| status.registry.clone());
    registry.remove(&wanted.team_path()).await?;
    registry.remove(&wanted.user_path()).await?;
    for repo in former.iter().flat_map(|former| &former.repos).chain(&wanted.repos) {
        registry.remove(&wanted.repo_path(repo)).await?;
    }
    registry.remove(&wanted.org_path()).await?;
    Ok(())
}

/// The operator, with a registry client and the key for its passwords.
pub fn operator(registry: RegistryClient, passwords: Passwords) -> kopf::Operator {
    kopf::operator!("app-environment", [inside, outside, farewell]).state(registry).state(passwords)
}

/// The operator, configured by environment variables: `REGISTRY` is the address of the registry,
/// and `REGISTRY_KEY` is the key for its passwords.
pub fn from_environment() -> kopf::Operator {
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or(default.to_owned());
    let registry = RegistryClient::over_tcp(&variable("REGISTRY", "127.0.0.1:8081"));
    let passwords = Passwords::new(&variable("REGISTRY_KEY", "only for the demo"));
    operator(registry, passwords)
}
