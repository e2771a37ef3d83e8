//! Compares the causes of two refusals, and finds the changes of the release that explain the rest.
//!
//! Pure. Causes that are equal cancel each other out; of the others, each must be explained, alone
//! or together with its counterpart. Otherwise, nothing is explained: a refusal has one meaning.

use serde_json::Value;

use super::Exchanges;
use super::validation::CHANGES;
use crate::pairing::Difference;

const INVALID: u64 = 422;
const PLACE: &str = "/response/details/causes";
const MESSAGE: &str = "/response/message";

/// One cause of a refusal.
pub(super) struct Cause<'a> {
    pub(super) field: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

impl<'a> Cause<'a> {
    fn new(value: &'a Value) -> Self {
        let text = |name: &str| value[name].as_str().unwrap_or_default();
        Self { field: text("field"), reason: text("reason"), message: text("message") }
    }
}

/// A cause that only one server names, or two that differ; and all causes of both.
pub(super) struct Unequal<'a> {
    pub(super) judge: Option<&'a Cause<'a>>,
    pub(super) subject: Option<&'a Cause<'a>>,
    /// All causes of the judge, with those that are equal.
    pub(super) judges: &'a [Cause<'a>],
    pub(super) subjects: &'a [Cause<'a>],
}

/// The changes that explain all differences between the causes.
pub(super) fn explain(
    exchanges: &Exchanges,
    differences: &[Difference],
) -> Option<Vec<&'static str>> {
    if !differences.iter().any(|difference| is_about(exchanges, difference)) {
        return None;
    }
    let is_comparable = match exchanges.statuses() {
        (INVALID, INVALID) => {
            let differs = |it: &Difference| it.pointer == MESSAGE;
            let (judge, subject) = exchanges.messages();
            !differences.iter().any(differs) || beginning(judge) == beginning(subject)
        }
        _ => was_accepted_once(exchanges),
    };
    if !is_comparable {
        return None;
    }
    let (judges, subjects) = (causes(exchanges.judge), causes(exchanges.subject));
    match_all(exchanges, &judges, &subjects)
}

/// Whether the difference belongs to the causes that `explain` has compared.
pub(super) fn is_about(exchanges: &Exchanges, difference: &Difference) -> bool {
    difference.pointer.starts_with(PLACE)
        || difference.pointer == MESSAGE && !causes(exchanges.judge).is_empty()
        || was_accepted_once(exchanges)
}

/// Whether one of the servers accepted what the other one calls invalid.
fn was_accepted_once(exchanges: &Exchanges) -> bool {
    matches!(exchanges.statuses(), (200..300, INVALID) | (INVALID, 200..300))
}

/// The part of a message that names the object.
fn beginning(message: &str) -> Option<&str> {
    message.split_once(" is invalid: ").map(|(beginning, _)| beginning)
}

fn causes(side: &Value) -> Vec<Cause<'_>> {
    let causes = side["response"]["details"]["causes"].as_array();
    causes.into_iter().flatten().map(Cause::new).collect()
}

fn match_all<'a>(
    exchanges: &Exchanges,
    judges: &'a [Cause<'a>],
    subjects: &'a [Cause<'a>],
) -> Option<Vec<&'static str>> {
    let (mut left, mut right): (Vec<&Cause>, Vec<&Cause>) =
        (judges.iter().collect(), subjects.iter().collect());
    cancel(&mut left, &mut right);
    let mut found = Vec::new();
    let change = |judge, subject| {
        let unequal = Unequal { judge, subject, judges, subjects };
        CHANGES.iter().find(|change| (change.explains)(exchanges, &unequal))
    };
    left.retain(|judge| {
        let partner = right
            .iter()
            .enumerate()
            .find_map(|(place, subject)| Some((place, change(Some(*judge), Some(*subject))?)));
        if let Some((place, change)) = partner {
            right.remove(place);
            found.push(change.about);
        }
        partner.is_none()
    });
    for judge in left {
        found.push(change(Some(judge), None)?.about);
    }
    for subject in right {
        found.push(change(None, Some(subject))?.about);
    }
    Some(found)
}

/// Removes causes that both name, each as often as both name it.
fn cancel(left: &mut Vec<&Cause>, right: &mut Vec<&Cause>) {
    left.retain(|judge| {
        let is_equal = |subject: &&Cause| {
            subject.field == judge.field
                && subject.reason == judge.reason
                && subject.message == judge.message
        };
        let twin = right.iter().position(is_equal);
        if let Some(place) = twin {
            right.remove(place);
        }
        twin.is_none()
    });
}
