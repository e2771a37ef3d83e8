//! Lists of what a server offers: groups, resources, parameters in OpenAPI documents.
//!
//! Pure. A new item moves all later ones, so such lists are compared by the names of their items:
//! everything that the subject offers must be there, and what is new must be known.

use serde_json::Value;

use super::Exchanges;
use crate::pairing::Difference;

const ABOUT: &str = "new groups, kinds and parameters in discovery and OpenAPI documents";

/// What later releases offer and this one does not.
const NEW: [&str; 11] = [
    "resource.k8s.io",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicies/status",
    "mutatingadmissionpolicybindings",
    "volumeattributesclasses",
    "shardSelector",
    "shardInfo",
    // Of the replicas in a scale.
    "default",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ShardInfo",
    "apis/resource.k8s.io",
    "apis/resource.k8s.io/v1",
];

/// Fields that differ for other reasons: versions that are stored, groups that have options for
/// deletion, the version of the server, and the type of a list on the details of a `Status`, which
/// are no list.
const IGNORED: [&str; 4] =
    ["storageVersionHash", "x-kubernetes-group-version-kind", "info", "x-kubernetes-list-type"];

/// Removes the differences if the whole document has only such new items.
pub(super) fn explain(
    exchanges: &Exchanges,
    differences: &mut Vec<Difference>,
) -> Option<&'static str> {
    let is_document = exchanges.path.starts_with("/apis") || exchanges.path.starts_with("/openapi");
    let (judge, subject) = (&exchanges.judge["response"], &exchanges.subject["response"]);
    let is_list = judge.get("resources").or(judge.get("groups")).or(judge.get("paths")).is_some();
    if differences.is_empty() || !is_document || !is_list {
        return None;
    }
    if !contains(judge, subject) {
        return None;
    }
    differences.clear();
    Some(ABOUT)
}

/// Whether the judge has everything of the subject, and what is new is known.
fn contains(judge: &Value, subject: &Value) -> bool {
    match (judge, subject) {
        (Value::Object(judge), Value::Object(subject)) => {
            let kept = subject.iter().all(|(field, value)| {
                IGNORED.contains(&field.as_str())
                    || judge.get(field).is_some_and(|other| contains(other, value))
            });
            let mut new = judge.keys().filter(|field| !subject.contains_key(*field));
            kept && new.all(|field| is_new(field))
        }
        (Value::Array(judge), Value::Array(subject)) => {
            let mut left: Vec<&Value> = judge.iter().collect();
            let kept = subject.iter().all(|item| {
                let place = left.iter().position(|other| contains(other, item));
                place.map(|place| left.remove(place)).is_some()
            });
            kept && left.iter().all(|item| item["name"].as_str().is_some_and(is_new))
        }
        _ => judge == subject,
    }
}

fn is_new(name: &str) -> bool {
    NEW.contains(&name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::contains;

    #[test]
    fn known_items_may_be_new_anywhere() {
        let subject = json!({"groups": [{"name": "apps"}, {"name": "batch"}]});
        let judge =
            |new: &str| json!({"groups": [{"name": "apps"}, {"name": new}, {"name": "batch"}]});
        assert!(contains(&judge("resource.k8s.io"), &subject));
        assert!(!contains(&judge("other.k8s.io"), &subject));
    }

    #[test]
    fn nothing_may_be_missing_or_changed() {
        let subject = json!({"groups": [{"name": "apps", "versions": ["v1"]}]});
        assert!(!contains(&json!({"groups": []}), &subject));
        assert!(!contains(&json!({"groups": [{"name": "apps", "versions": ["v2"]}]}), &subject));
    }
}
