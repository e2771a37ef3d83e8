//! The identity of the requesting user, as produced by authentication.
//!
//! Plain data. Created by `authn` (or passed to a `LocalClient`), read by authorization, admission
//! and managed fields.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The identity behind one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// The user name, such as `system:serviceaccount:default:default`.
    pub name: String,
    /// The stable id of the user, empty when there is none.
    pub uid: String,
    /// Every group of the user.
    pub groups: Vec<String>,
    /// Extra attributes as authenticators report them.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// `UserInfo`, as reviews and audit events carry it.
    pub fn to_value(&self) -> Value {
        let mut info = json!({ "username": self.name });
        if !self.uid.is_empty() {
            info["uid"] = json!(self.uid);
        }
        if !self.groups.is_empty() {
            info["groups"] = json!(self.groups);
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }

    /// A member of `system:masters`, who may do everything.
    pub fn admin() -> Self {
        Self::new("kubernetes-admin", ["system:masters", "system:authenticated"])
    }

    /// The user of a request without credentials.
    pub fn anonymous() -> Self {
        Self::new("system:anonymous", ["system:unauthenticated"])
    }

    /// The identity of a service account.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(
            &format!("system:serviceaccount:{namespace}:{name}"),
            [
                "system:serviceaccounts",
                &format!("system:serviceaccounts:{namespace}"),
                "system:authenticated",
            ],
        )
    }

    /// A user with a name and groups.
    pub fn new<'a>(name: &str, groups: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.into_iter().map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// Whether the user belongs to `system:masters`.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == "system:masters")
    }
}
