//! The rights that a user needs to impersonate another user.
//!
//! Pure: one check per part of the impersonated identity, as in upstream.

use super::Attributes;
use crate::User;

/// The checks for impersonating `wanted`; groups that every user has need no right.
pub(crate) fn impersonation_of(wanted: &User) -> Vec<Attributes> {
    let ask = |group: &str, resource: &str, name: &str| Attributes {
        verb: "impersonate".to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    };
    let account =
        wanted.name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    let mut questions = match account {
        Some((namespace, name)) => {
            vec![Attributes { namespace: namespace.to_owned(), ..ask("", "serviceaccounts", name) }]
        }
        None => vec![ask("", "users", &wanted.name)],
    };
    let own = account.map(|(namespace, name)| User::service_account(namespace, name));
    for group in &wanted.groups {
        let is_given = group == "system:authenticated"
            || own.as_ref().is_some_and(|own| own.groups.contains(group));
        if !is_given {
            questions.push(ask("", "groups", group));
        }
    }
    if !wanted.uid.is_empty() {
        questions.push(ask("authentication.k8s.io", "uids", &wanted.uid));
    }
    for (key, values) in &wanted.extra {
        questions.extend(values.iter().map(|value| Attributes {
            subresource: key.clone(),
            ..ask("authentication.k8s.io", "userextras", value)
        }));
    }
    questions
}
