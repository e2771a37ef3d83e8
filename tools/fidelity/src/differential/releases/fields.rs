//! Fields of answers that later releases fill otherwise.
//!
//! Pure: the list of changes, each about single differences.

use serde_json::Value;

use super::{Change, Exchanges};
use crate::pairing::Difference;

pub(super) const CHANGES: [Change; 17] = [
    Change {
        about: "errors show refused values as JSON; before, as Go prints them or in quotes",
        explains: |_, it| texts(it, super::texts::shows_value_otherwise),
    },
    Change {
        about: "`creationTimestamp: null` is left out, as in templates, bookmarks and reviews",
        explains: |_, it| {
            let is_time = it.pointer.ends_with("reationTimestamp");
            // The metadata of a claim in a Pod may have nothing else.
            let is_all_metadata =
                it.pointer.ends_with("/f:ephemeral/f:volumeClaimTemplate/f:metadata/.");
            is_null_only_before(it) && is_time
                || is_owned_only_before(it) && (is_time || is_all_metadata)
        },
    },
    Change {
        about: "Deployments and ReplicaSets report `terminatingReplicas`",
        explains: |_, it| it.pointer.ends_with("erminatingReplicas") && it.subject.is_none(),
    },
    Change {
        about: "tables of ServiceAccounts have no column with the number of secrets",
        explains: |exchanges, it| is_column_of_secrets(exchanges, it),
    },
    Change {
        about: "columns of tables have other descriptions, from the fields they show",
        explains: |_, it| {
            it.pointer.starts_with("/response/columnDefinitions/")
                && it.pointer.ends_with("/description")
                && texts(it, |_, _| true)
        },
    },
    Change {
        about: "bookmarks at the end of initial events have no blueprint of a list",
        explains: |_, it| it.pointer.ends_with("/kubernetes.io/initial-events-list-blueprint"),
    },
    Change {
        about: "a write to the status of a custom resource owns no metadata",
        explains: |_, it| {
            it.judge.is_none()
                && it.pointer.contains("/managedFields/")
                && it.pointer.ends_with("/fieldsV1/f:metadata")
        },
    },
    Change {
        about: "a status of a disruption budget owns its counts also if they are 0",
        explains: |exchanges, it| {
            exchanges.path.contains("/poddisruptionbudgets/")
                && it.subject.is_none()
                && it.pointer.contains("/fieldsV1/f:status/f:")
        },
    },
    Change {
        about: "new warnings, such as those about `PreferClose` and tokens of CSI drivers",
        explains: |_, it| it.pointer == "/warning" && it.judge.is_some() && it.subject.is_none(),
    },
    Change {
        about: "the version, and hashes of documents that contain it",
        explains: |_, it| {
            ["/response/info/version", "/response/minor", "/response/emulationMinor"]
                .contains(&it.pointer.as_str())
        },
    },
    Change {
        about: "hashes of templates: Go's structs have more fields, and the hashes are of their dumps",
        explains: |_, it| texts(it, differ_in_hash),
    },
    Change {
        about: "a new token has a uid",
        explains: |exchanges, it| {
            exchanges.path.ends_with("/token")
                && it.pointer == "/response/metadata/uid"
                && it.subject.is_none()
        },
    },
    Change {
        about: "the error about an applied list item without its key says \"all key fields\"",
        explains: |_, it| {
            const BEFORE: &str = "associative list with keys has an element that omits key field ";
            const AFTER: &str =
                "associative list with keys has an element that omits all key fields ";
            texts(it, |judge, subject| {
                let starts = judge.split_once(AFTER).zip(subject.split_once(BEFORE));
                starts.is_some_and(|((judge, _), (subject, _))| judge == subject)
            })
        },
    },
    Change {
        about: "autoscalers: `tolerance` of the behaviour",
        explains: |exchanges, it| {
            exchanges.path.contains("/horizontalpodautoscalers")
                && (it.pointer.ends_with("/tolerance") || it.pointer.ends_with("/f:tolerance"))
                && it.subject.is_none()
        },
    },
    Change {
        about: "Pods may set `resources` for all containers together, and mount images",
        explains: |exchanges, it| {
            let is_new = it.pointer == "/response/spec/resources" && it.subject.is_none();
            let sets = !exchanges.judge["response"]["spec"]["resources"].is_null();
            let is_class = sets && it.pointer == "/response/status/qosClass";
            is_new || is_class || is_volume_of_image(exchanges, it)
        },
    },
    Change {
        about: "claims have a class of volume attributes",
        explains: |_, it| {
            let ends = ["/spec/volumeAttributesClassName", "/f:spec/f:volumeAttributesClassName"];
            ends.iter().any(|end| it.pointer.ends_with(end)) && it.subject.is_none()
        },
    },
    Change {
        about: "other versions of networking kinds are stored",
        explains: |exchanges, it| {
            exchanges.path == "/apis/networking.k8s.io/v1"
                && it.pointer.ends_with("/storageVersionHash")
                && texts(it, |_, _| true)
        },
    },
];

/// Whether both are texts that belong together.
fn texts(difference: &Difference, belong: impl Fn(&str, &str) -> bool) -> bool {
    match (&difference.judge, &difference.subject) {
        (Some(Value::String(judge)), Some(Value::String(subject))) => belong(judge, subject),
        _ => false,
    }
}

fn is_null_only_before(difference: &Difference) -> bool {
    difference.judge.is_none() && difference.subject.as_ref().is_none_or(Value::is_null)
}

/// Whether only the subject says that a manager owns the field.
fn is_owned_only_before(difference: &Difference) -> bool {
    let is_empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
    difference.judge.is_none()
        && difference.pointer.contains("/fieldsV1/")
        && difference.subject.as_ref().is_some_and(is_empty)
}

/// Whether the volumes are equal but for those that are images.
fn is_volume_of_image(exchanges: &Exchanges, it: &Difference) -> bool {
    let volumes = |side: &Value| -> Vec<Value> {
        let volumes = side["response"]["spec"]["volumes"].as_array();
        volumes.into_iter().flatten().map(|volume| comparable(volume.clone())).collect()
    };
    let mut judges = volumes(exchanges.judge);
    let before = judges.len();
    judges.retain(|volume| volume.get("image").is_none());
    let are_equal = judges.len() < before && judges == volumes(exchanges.subject);
    let is_owned = it.pointer.contains("/f:volumes/k:") && it.subject.is_none();
    are_equal && (it.pointer.starts_with("/response/spec/volumes/") || is_owned)
}

/// The value without times that are null, and without the numbers of generated names.
fn comparable(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|name, value| !(name == "creationTimestamp" && value.is_null()));
            fields.values_mut().for_each(|value| *value = comparable(value.take()));
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|value| *value = comparable(value.take()));
        }
        Value::String(text) => {
            if let Some((prefix, _)) = text.split_once("<generated:") {
                *text = format!("{prefix}<generated>");
            }
        }
        _ => {}
    }
    value
}

fn is_column_of_secrets(exchanges: &Exchanges, it: &Difference) -> bool {
    let names_secrets = |value: &Option<Value>| {
        value.as_ref().is_some_and(|value| value.to_string().contains("ecrets"))
    };
    let is_cell = it.pointer.starts_with("/response/rows/")
        && exchanges.path.contains("/serviceaccounts")
        && it.pointer.contains("/cells/");
    let is_count =
        it.subject.as_ref().is_some_and(Value::is_u64) && it.judge == Some("<age>".into());
    let is_age = it.judge.is_none() && it.subject == Some("<age>".into());
    (is_cell && (is_count || is_age))
        || (it.pointer.starts_with("/response/columnDefinitions/")
            && (names_secrets(&it.subject) || it.judge.is_none()))
}

/// Whether the texts are equal but for one hash of a template: `d-746cd9445b`.
fn differ_in_hash(judge: &str, subject: &str) -> bool {
    const LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";
    let is_part = |letter: char| letter.is_ascii_alphanumeric();
    let parts = |text: &str| -> Vec<String> {
        text.split_inclusive(|letter| !is_part(letter)).map(ToOwned::to_owned).collect()
    };
    let is_hash = |part: &str| {
        let part = part.trim_end_matches(|letter| !is_part(letter));
        (8..=10).contains(&part.len()) && part.chars().all(|letter| LETTERS.contains(letter))
    };
    let (judge, subject) = (parts(judge), parts(subject));
    let unequal: Vec<_> =
        judge.iter().zip(&subject).filter(|(left, right)| left != right).collect();
    judge.len() == subject.len()
        && unequal.len() == 1
        && unequal.iter().all(|(left, right)| is_hash(left) && is_hash(right))
}
