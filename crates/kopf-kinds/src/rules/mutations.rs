//! Rules of mutating admission policies.

use serde_json::Value;

use super::Problems;
use super::admission::{compile, matching};
use crate::fields::{is_empty, list, text};
use crate::schema::cel::Wanted;

/// The patch types of mutations: name, field and required result type.
const PATCHES: [(&str, &str, Wanted); 2] = [
    ("ApplyConfiguration", "applyConfiguration", Wanted::Object),
    ("JSONPatch", "jsonPatch", Wanted::JsonPatch),
];

/// Rules of a policy.
pub(super) fn policy(spec: &Value, problems: &mut Problems) {
    let scope = matching(spec, problems);
    if is_empty(spec, "mutations") {
        problems.required("spec.mutations", "mutations must contain at least one item");
    }
    for (index, mutation) in list(spec, "mutations").iter().enumerate() {
        let path = format!("spec.mutations[{index}]");
        let kind = text(mutation, "patchType");
        if kind.is_empty() {
            problems.required(&format!("{path}.patchType"), "");
        } else {
            problems.one_of(
                &format!("{path}.patchType"),
                &mutation["patchType"],
                &PATCHES.map(|it| it.0),
            );
        }
        for (name, field, wanted) in PATCHES {
            let at = format!("{path}.{field}");
            match (kind == name, mutation[field].is_object()) {
                (false, true) => {
                    let detail = format!("must not be specified when patchType is {kind}");
                    problems.forbidden(&at, &detail);
                }
                (true, false) => {
                    let detail = format!("must be specified when patchType is {kind}");
                    problems.required(&at, &detail);
                }
                (true, true) => {
                    let expression = text(&mutation[field], "expression");
                    let at = format!("{at}.expression");
                    match expression.trim().is_empty() {
                        true => problems.required(&at, "expression is not specified"),
                        false => compile(expression, &scope, wanted, &at, problems),
                    }
                }
                (false, false) => {}
            }
        }
    }
    let policies = ["IfNeeded", "Never"];
    if is_empty(spec, "reinvocationPolicy") {
        problems.required("spec.reinvocationPolicy", "");
    } else {
        problems.one_of("spec.reinvocationPolicy", &spec["reinvocationPolicy"], &policies);
    }
}
