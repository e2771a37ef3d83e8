//! Authorization: decides whether a user may make a request.
//!
//! Responsible for the [`Authorizer`] trait, its permissive default and the role-based
//! implementation. Called by the pipeline before it reads a body, by access and rules reviews, and
//! by writes of roles and bindings, whose writers must hold the rights that they grant. Decisions
//! depend only on one snapshot of the store.

mod escalation;
mod impersonation;
mod rules;

use serde_json::Value;

use crate::User;
use crate::access::{Attributes, Decision};
use crate::store::Snapshot;

pub(crate) use escalation::{Write, check as check_escalation};
pub(crate) use impersonation::impersonation_of;
pub(crate) use rules::RoleBased;

/// The rights of a user in a namespace, as reported by rules reviews.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Permissions {
    /// Rules about resources.
    pub(crate) resource_rules: Vec<Value>,
    /// Rules about paths.
    pub(crate) path_rules: Vec<Value>,
}

/// Authorizes requests, based only on the state of the store.
pub(crate) trait Authorizer: Send + Sync {
    /// The decision for one request.
    fn authorize(&self, snapshot: &Snapshot, user: &User, attributes: &Attributes) -> Decision;

    /// All rights of a user in a namespace.
    fn permissions(&self, snapshot: &Snapshot, user: &User, namespace: &str) -> Permissions;
}

/// Allows everything, the default mode.
pub(crate) struct AllowAll;

impl Authorizer for AllowAll {
    fn authorize(&self, _: &Snapshot, _: &User, _: &Attributes) -> Decision {
        Decision::Allow(String::new())
    }

    fn permissions(&self, _: &Snapshot, _: &User, _: &str) -> Permissions {
        Permissions::everything()
    }
}

impl Permissions {
    fn everything() -> Self {
        Self {
            resource_rules: vec![
                serde_json::json!({ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }),
            ],
            path_rules: vec![serde_json::json!({ "verbs": ["*"], "nonResourceURLs": ["*"] })],
        }
    }
}

#[cfg(test)]
mod tests;
