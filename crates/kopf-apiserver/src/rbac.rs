//! Authorization: may this user do this?
//!
//! Owns the [`Authorizer`] trait, its permissive default and the role-based one. The pipeline asks
//! before it reads a body; access and rules reviews ask as well, and so do writes of roles and
//! bindings, whose writers must hold what they grant. Decisions look only at one snapshot of the
//! store.

mod bootstrap;
mod escalation;
mod impersonation;
mod rules;

use serde_json::Value;

use crate::User;
use crate::access::{Attributes, Decision};
use crate::store::Snapshot;

pub(crate) use bootstrap::objects as bootstrap_objects;
pub(crate) use escalation::{Write, check as check_escalation};
pub(crate) use impersonation::impersonation_of;
pub(crate) use rules::RoleBased;

/// What a user may do in a namespace, as rules reviews report it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Permissions {
    /// Rules about resources.
    pub(crate) resource_rules: Vec<Value>,
    /// Rules about paths.
    pub(crate) path_rules: Vec<Value>,
}

/// Decides over requests, looking only at the state of the store.
pub(crate) trait Authorizer: Send + Sync {
    /// The verdict for one request.
    fn authorize(&self, snapshot: &Snapshot, user: &User, attributes: &Attributes) -> Decision;

    /// Everything that a user may do in a namespace.
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
