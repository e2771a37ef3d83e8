//! The rights needed for Roles and bindings among the children.
//!
//! Kubernetes does not allow granting rights that one does not hold, unless one may `escalate` the
//! role or `bind` it. The narrowest option is used: declared rights are held, or bound by name;
//! only unknown ones need the wide verbs.

use super::{Scope, Verbs, resource};
use crate::handler::{Grants, Handler, HandlerKind, Need};

/// The API group of roles and bindings.
const GROUP: &str = "rbac.authorization.k8s.io";

/// How a handler may create roles or bindings of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// It holds everything that is granted.
    Holds,
    /// It may grant anything.
    Escalates,
    /// It may bind certain roles.
    BindsSome,
    /// It may bind any role.
    BindsAny,
}

impl Way {
    /// The way for children of a plural; `None` if they grant nothing.
    fn of(grants: &Grants, group: &str, plural: &str) -> Option<Self> {
        let is_wide = |names: [&str; 2]| group == GROUP && names.contains(&plural);
        let is_declared = !grants.rules.is_empty();
        if is_wide(["roles", "clusterroles"]) {
            return Some(if is_declared { Self::Holds } else { Self::Escalates });
        }
        if !is_wide(["rolebindings", "clusterrolebindings"]) {
            return None;
        }
        Some(match (grants.bound.is_empty(), is_declared) {
            (false, _) => Self::BindsSome,
            (true, true) => Self::Holds,
            (true, false) => Self::BindsAny,
        })
    }
}

impl Verbs {
    /// Adds the rights needed to grant something through children of this resource.
    pub(super) fn add_granted(
        &mut self,
        handler: &Handler,
        scope: Scope,
        group: &str,
        plural: &str,
    ) {
        let grants = &handler.access.grants;
        match Way::of(grants, group, plural) {
            None => {}
            Some(Way::Escalates) => self.add(scope, GROUP, plural, &["escalate"]),
            Some(Way::Holds) => {
                for Need { group, resource, verbs } in &grants.rules {
                    let verbs: Vec<&str> = verbs.iter().map(|verb| verb.trim()).collect();
                    self.add(scope, group, resource, &verbs);
                }
            }
            Some(Way::BindsSome) => {
                for (roles, name) in &grants.bound {
                    let name = Some(name.clone());
                    self.add_to((scope, GROUP.to_owned(), roles.clone(), name), &["bind"]);
                }
            }
            Some(Way::BindsAny) => {
                for roles in bindable(plural) {
                    self.add(scope, GROUP, roles, &["bind"]);
                }
            }
        }
    }
}

/// The roles that bindings of a plural may refer to.
fn bindable(plural: &str) -> &'static [&'static str] {
    if plural == "clusterrolebindings" { &["clusterroles"] } else { &["clusterroles", "roles"] }
}

/// Explains to readers of the rules why they have more rights than the handlers use themselves.
#[must_use]
pub fn notes<'a>(handlers: impl IntoIterator<Item = &'a Handler>) -> Vec<String> {
    let is_desired = |handler: &&Handler| matches!(handler.kind, HandlerKind::Desired);
    let mut notes = Vec::new();
    for handler in handlers.into_iter().filter(is_desired) {
        for child in &handler.children {
            let (group, plural) = resource(child);
            if let Some(way) = Way::of(&handler.access.grants, group, plural) {
                notes.push(note(handler, plural, way));
            }
        }
    }
    notes
}

fn note(handler: &Handler, plural: &str, way: Way) -> String {
    let (id, bound) = (&handler.id, &handler.access.grants.bound);
    match way {
        Way::Holds => format!(
            "`{id}` makes {plural}. Kubernetes lets nobody grant what they do not hold, so the \
             operator holds what the handler declares by `grants`."
        ),
        Way::Escalates => format!(
            "`{id}` makes {plural}, and does not declare what these grant. Kubernetes lets nobody \
             grant what they do not hold, except with the verb `escalate`, which is as good as all \
             rights. Declare it by `grants = [\"get,list pods\"]` at the handler, and the operator \
             gets these rights instead."
        ),
        Way::BindsSome => {
            let names: Vec<String> =
                bound.iter().map(|(plural, name)| format!("{plural}/{name}")).collect();
            format!(
                "`{id}` makes {plural}. Kubernetes lets nobody bind a role with rights that they do \
                 not hold, except with the verb `bind`, which the operator has for the roles that \
                 the handler declares: {}.",
                names.join(", ")
            )
        }
        Way::BindsAny => format!(
            "`{id}` makes {plural}, and does not declare which roles these bind. Kubernetes lets \
             nobody bind a role with rights that they do not hold, except with the verb `bind`, \
             which is as good as all rights. Declare the roles by `binds = [\"clusterroles/view\"]` \
             at the handler, and the operator may bind only these."
        ),
    }
}

#[cfg(test)]
mod tests;
