//! The journal is bounded, and distinguishes changes from repetitions.

use std::collections::BTreeSet;
use std::sync::Arc;

use kopf_core::occasion::Subject;
use kopf_model::{Object, Resource, Timestamp};
use serde_json::json;

use super::{
    AttemptEnding, ENTRIES_MAX, Episode, Journal, OBJECTS_MAX, Situation, TEXT_MAX, shorten,
};

fn subject(name: &str, uid: &str) -> Subject {
    let resource = Resource {
        group: "kopf.dev".into(),
        version: "v1".into(),
        plural: "examples".into(),
        kind: "Example".into(),
        singular: "example".into(),
        shortcuts: BTreeSet::new(),
        categories: BTreeSet::new(),
        subresources: BTreeSet::new(),
        namespaced: true,
        preferred: true,
        verbs: BTreeSet::new(),
    };
    let object = Object::from_value(json!({
        "kind": "Example", "metadata": {"name": name, "namespace": "ns", "uid": uid},
    }));
    Subject { resource: Arc::new(resource), object }
}

fn cause(reason: &str) -> Episode {
    Episode::Cause {
        reason: reason.into(),
        changes: Vec::new(),
        more: 0,
        selected: Vec::new(),
        filtered: Vec::new(),
    }
}

fn trouble(error: &str) -> Episode {
    Episode::Trouble { error: error.into() }
}

#[test]
fn nothing_is_remembered_if_it_cannot_be_read() {
    let journal = Journal::new(false);
    journal.note(&subject("a", "1"), Timestamp::UNIX_EPOCH, || panic!("it is not needed"));
    assert!(journal.of("examples.kopf.dev", Some("ns"), "a").is_none());
}

#[test]
fn entries_and_objects_are_bounded() {
    let journal = Journal::new(true);
    for number in 0..100 {
        let episode = trouble(&number.to_string());
        journal.note(&subject("a", "1"), Timestamp::UNIX_EPOCH, || episode);
    }
    let known = journal.of("examples.kopf.dev", Some("ns"), "a").unwrap();
    assert_eq!(known.entries.len(), ENTRIES_MAX);
    assert_eq!(known.entries.back().unwrap().episode, trouble("99"));
    for number in 0..OBJECTS_MAX {
        let other = subject(&format!("b{number}"), &number.to_string());
        journal.conclude(&other, Situation::default);
    }
    assert!(journal.of("examples.kopf.dev", Some("ns"), "a").is_none(), "the oldest one goes");
    assert!(journal.of("examples.kopf.dev", Some("ns"), "b0").is_some());
    assert_eq!(journal.since(0).objects.len(), OBJECTS_MAX);
}

#[test]
fn routine_calls_do_not_displace_causes() {
    let journal = Journal::new(true);
    let attempt = |handler: String, number, routine| Episode::Attempt {
        handler,
        number,
        milliseconds: 1,
        ending: AttemptEnding::Success,
        error: None,
        next_at: None,
        routine,
    };
    let mut episodes = vec![cause("create"), attempt("create_fn".into(), 1, false)];
    for number in 0..100 {
        episodes.push(attempt("index_fn".into(), number, true));
        episodes.push(attempt("desired_fn".into(), number, true));
        episodes.push(attempt(format!("index_{number}"), 1, true));
        episodes.push(Episode::Write {
            fields: vec![number.to_string()],
            more: 0,
            changes: Vec::new(),
        });
    }
    episodes.push(cause("update"));
    for episode in episodes {
        journal.note(&subject("a", "1"), Timestamp::UNIX_EPOCH, || episode);
    }
    let known = journal.of("examples.kopf.dev", Some("ns"), "a").unwrap();
    let episodes: Vec<&Episode> = known.entries.iter().map(|entry| &entry.episode).collect();
    assert_eq!(episodes.len(), ENTRIES_MAX);
    assert_eq!(episodes[0], &cause("create"));
    assert_eq!(episodes.last(), Some(&&cause("update")));
    let of_index =
        |it: &&&Episode| matches!(it, Episode::Attempt { handler, .. } if handler == "index_fn");
    assert!(episodes.iter().filter(of_index).count() <= 1, "{episodes:?}");
}

#[test]
fn a_cause_that_is_detected_again_is_not_recorded() {
    let journal = Journal::new(true);
    for episode in [cause("create"), trouble("x"), cause("create"), cause("update")] {
        journal.note(&subject("a", "1"), Timestamp::UNIX_EPOCH, || episode);
    }
    let known = journal.of("examples.kopf.dev", Some("ns"), "a").unwrap();
    let episodes: Vec<&Episode> = known.entries.iter().map(|entry| &entry.episode).collect();
    assert_eq!(episodes, [&cause("create"), &trouble("x"), &cause("update")]);
}

#[test]
fn a_new_object_of_the_same_name_has_a_new_history() {
    let journal = Journal::new(true);
    journal.note(&subject("a", "1"), Timestamp::UNIX_EPOCH, || trouble("old"));
    journal.note(&subject("a", "2"), Timestamp::UNIX_EPOCH, || trouble("new"));
    let known = journal.of("examples.kopf.dev", Some("ns"), "a").unwrap();
    assert_eq!((known.uid.as_str(), known.entries.len()), ("2", 1));
}

#[test]
fn changes_are_found_by_their_sequence() {
    let journal = Journal::new(true);
    journal.note(&subject("a", "1"), Timestamp::UNIX_EPOCH, || trouble("x"));
    journal.note(&subject("b", "2"), Timestamp::UNIX_EPOCH, || trouble("x"));
    let seen = journal.since(0);
    let names: Vec<&str> = seen.objects.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    journal.note(&subject("a", "1"), Timestamp::UNIX_EPOCH, || trouble("y"));
    let names: Vec<String> =
        journal.since(seen.sequence).objects.into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["a"]);
}

#[test]
fn long_texts_are_truncated_at_characters() {
    let text = shorten("ä".repeat(TEXT_MAX + 1));
    assert_eq!(text.chars().count(), TEXT_MAX + 1);
    assert!(text.ends_with('…'));
}
