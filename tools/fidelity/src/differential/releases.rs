//! What newer releases of Kubernetes answer differently, so that it can be told from our mistakes.
//!
//! Pure. Applied only if the judge is of a later release than the subject. Every change is listed in
//! the report with the number of steps that it explains; such steps do not count as equal.

use std::collections::BTreeMap;

use serde_json::Value;

use super::compare::{ScriptResult, Verdict, weigh};
use crate::pairing::Difference;

/// One change between releases.
struct Change {
    about: &'static str,
    explains: fn(&Difference) -> bool,
}

const CHANGES: [Change; 8] = [
    Change {
        about: "errors show refused values as JSON; before, as Go prints them or in quotes",
        explains: shows_value_otherwise,
    },
    Change {
        about: "`creationTimestamp: null` is left out, as in templates, bookmarks and reviews",
        explains: |it| is_null_only_before(it) && it.pointer.ends_with("reationTimestamp"),
    },
    Change {
        about: "Deployments and ReplicaSets report `terminatingReplicas`",
        explains: |it| it.pointer.ends_with("erminatingReplicas") && it.subject.is_none(),
    },
    Change {
        about: "tables of ServiceAccounts have no column with the number of secrets",
        explains: |it| {
            let is_cell = it.pointer.starts_with("/response/rows/0/cells/");
            let names_secrets = |value: &Option<Value>| {
                value.as_ref().is_some_and(|value| value.to_string().contains("ecrets"))
            };
            let is_count = it.subject == Some(Value::from(0)) && it.judge == Some("<age>".into());
            let is_age = it.judge.is_none() && it.subject == Some("<age>".into());
            (is_cell && (is_count || is_age))
                || (it.pointer.starts_with("/response/columnDefinitions/")
                    && (names_secrets(&it.subject) || it.judge.is_none()))
        },
    },
    Change {
        about: "bookmarks at the end of initial events have no blueprint of a list",
        explains: |it| it.pointer.ends_with("/kubernetes.io/initial-events-list-blueprint"),
    },
    Change {
        about: "a write to the status of a custom resource owns no metadata",
        explains: |it| {
            it.judge.is_none()
                && it.pointer.contains("/managedFields/")
                && it.pointer.ends_with("/fieldsV1/f:metadata")
        },
    },
    Change {
        about: "new warnings, such as those about `PreferClose` and tokens of CSI drivers",
        explains: |it| it.pointer == "/warning" && it.judge.is_some() && it.subject.is_none(),
    },
    Change {
        about: "the version, and hashes of documents that contain it",
        explains: |it| {
            ["/response/info/version", "/response/minor", "/response/emulationMinor"]
                .contains(&it.pointer.as_str())
        },
    },
];

/// The number of steps that each change explains, by what it is about.
pub(crate) type Explained = BTreeMap<&'static str, usize>;

/// Whether the judge is of a later minor release: `v1.36.3` after `v1.33.0+kopf-0.1.0`.
pub(crate) fn is_later(judge: &str, subject: &str) -> bool {
    let minor = |version: &str| version.split('.').nth(1).and_then(|part| part.parse::<u32>().ok());
    minor(judge) > minor(subject)
}

/// Removes the differences that are due to the release, and judges the steps again.
pub(crate) fn explain(results: &mut [ScriptResult]) -> Explained {
    let mut explained = Explained::new();
    for step in results.iter_mut().flat_map(|result| &mut result.steps) {
        let mut names: Vec<&str> = Vec::new();
        step.differences.retain(|difference| {
            let change = CHANGES.iter().find(|change| (change.explains)(difference));
            names.extend(change.map(|change| change.about));
            change.is_none()
        });
        names.sort_unstable();
        names.dedup();
        for name in &names {
            *explained.entry(name).or_default() += 1;
        }
        if !names.is_empty() {
            step.verdict = match weigh(&step.differences) {
                Verdict::Equal => Verdict::OtherRelease,
                other => other,
            };
        }
    }
    explained
}

fn is_null_only_before(difference: &Difference) -> bool {
    difference.judge.is_none() && difference.subject.as_ref().is_none_or(Value::is_null)
}

/// Whether two error texts differ only in how they print the refused value.
fn shows_value_otherwise(difference: &Difference) -> bool {
    const KINDS: [&str; 3] = ["Invalid value: ", "Unsupported value: ", "Duplicate value: "];
    let (Some(Value::String(judge)), Some(Value::String(subject))) =
        (&difference.judge, &difference.subject)
    else {
        return false;
    };
    KINDS.iter().any(|kind| {
        let halves = judge.split_once(kind).zip(subject.split_once(kind));
        let Some(((start, left), (other_start, right))) = halves else { return false };
        start == other_start && detail(left, right).is_some()
    })
}

/// What follows the value in both texts; a duplicate value has nothing after it.
fn detail<'a>(left: &'a str, right: &'a str) -> Option<&'a str> {
    // Values are printed in different lengths, so the common end is the detail.
    let mut places = left.match_indices(": ").map(|(place, _)| &left[place..]);
    match places.find(|end| right.ends_with(end)) {
        Some(end) => Some(end),
        None => (!is_text(left) && !is_text(right)).then_some(""),
    }
}

/// Whether the rest of the text is a sentence, not a printed value.
fn is_text(rest: &str) -> bool {
    let ends_as_value = rest.ends_with(['}', ']', '"', ')']);
    !ends_as_value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::differential::compare::StepResult;

    fn verdict(pointer: &str, judge: Option<Value>, subject: Option<Value>) -> Verdict {
        let difference = Difference { pointer: pointer.to_owned(), judge, subject };
        let step = StepResult {
            request: "GET /x".to_owned(),
            verdict: Verdict::Different,
            differences: vec![difference],
        };
        let mut results = [ScriptResult { name: "s".to_owned(), steps: vec![step] }];
        explain(&mut results);
        results[0].steps[0].verdict
    }

    #[test]
    fn releases_are_compared_by_their_minor_version() {
        assert!(is_later("v1.36.3", "v1.33.0+kopf-0.1.0"));
        assert!(!is_later("v1.33.13", "v1.33.0+kopf-0.1.0"));
    }

    #[test]
    fn values_in_errors_may_be_printed_otherwise() {
        let text = |value: &str| Some(json!(format!("Invalid value: {value}: may not be set")));
        let place = "/response/details/causes/0/message";
        let go = "map[string]string{\"a\":\"b\"}";
        assert_eq!(verdict(place, text("{\"a\":\"b\"}"), text(go)), Verdict::OtherRelease);
        let other = Some(json!("Invalid value: 5: must be set"));
        assert_eq!(verdict(place, text("5"), other), Verdict::Different);
        assert_eq!(verdict(place, text("5"), Some(json!("Required value"))), Verdict::Different);
    }

    #[test]
    fn a_field_that_only_the_later_release_has_is_not_explained() {
        assert_eq!(verdict("/response/spec/new", Some(json!(1)), None), Verdict::Different);
        let place = "/response/metadata/creationTimestamp";
        assert_eq!(verdict(place, None, Some(Value::Null)), Verdict::OtherRelease);
        assert_eq!(verdict(place, None, Some(json!("<time>"))), Verdict::Different);
    }
}
