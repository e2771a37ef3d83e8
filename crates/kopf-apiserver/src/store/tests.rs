//! Tests for the store: order, comparison, forks, bounded rings.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::Stored;
use crate::apply::ManagedFields;

use super::{Change, EventKind, ObjectKey, Refused, Snapshot, Store, StoreLimits};

fn object(name: &str, text: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": text})
}

fn write(store: &Store, name: &str, expected: u64, text: Option<&str>) -> Result<u64, Refused> {
    store
        .commit(Change {
            table: "configmaps".into(),
            key: ObjectKey::new("ns", name),
            expected,
            value: text.map(|text| object(name, text)),
            managed: ManagedFields::default(),
        })
        .map(|committed| committed.stored.resource_version())
}

/// Every object with its version.
fn contents(snapshot: &Snapshot) -> (u64, Vec<(String, u64)>) {
    let objects = snapshot.list("configmaps", "").map(|(key, stored)| {
        (format!("{}/{}", key.namespace, key.name), stored.resource_version())
    });
    (snapshot.resource_version(), objects.collect())
}

proptest! {
    #[test]
    fn past_states_are_what_they_were(writes in prop::collection::vec((0..40_usize, any::<bool>()), 1..200)) {
        let store = Store::new(StoreLimits::default(), 0);
        // Some snapshots are held and must not change; most are not held.
        let mut held = Vec::new();
        let mut past = vec![contents(&store.snapshot())];
        for (name, deletes) in writes {
            let name = format!("n{name}");
            let present = store.get("configmaps", "ns", &name).map_or(0, |it| it.resource_version());
            let text = (present == 0 || !deletes).then_some("1");
            write(&store, &name, present, text).unwrap();
            past.push(contents(&store.snapshot()));
            if past.len() % 7 == 0 {
                held.push(store.snapshot());
            }
        }
        for known in &past {
            let found = store.snapshot_at(known.0).expect("so few changes are remembered");
            prop_assert_eq!(&contents(&found), known);
            prop_assert_eq!(found.count("configmaps", "ns"), known.1.len());
        }
        for held in held {
            prop_assert_eq!(&contents(&held), &past[held.resource_version() as usize]);
        }
    }
}

#[test]
fn each_write_raises_the_one_version() {
    let store = Store::new(StoreLimits::default(), 0);
    assert_eq!(write(&store, "a", 0, Some("1")), Ok(1));
    assert_eq!(write(&store, "b", 0, Some("1")), Ok(2));
    assert_eq!(write(&store, "a", 1, Some("2")), Ok(3));
    assert_eq!(write(&store, "a", 1, Some("3")), Err(Refused::Raced));
    assert_eq!(write(&store, "a", 0, Some("3")), Err(Refused::Raced));
    assert_eq!(write(&store, "a", 3, None), Ok(4));
    assert_eq!(store.snapshot().resource_version(), 4);
}

#[test]
fn a_fork_has_its_own_future() {
    let store = Store::new(StoreLimits::default(), 0);
    write(&store, "a", 0, Some("1")).unwrap();
    let fork = store.fork();
    write(&fork, "b", 0, Some("1")).unwrap();
    assert!(store.snapshot().get("configmaps", "ns", "b").is_none());
    assert!(fork.snapshot().get("configmaps", "ns", "a").is_some());
}

#[test]
fn a_cursor_yields_everything_after_its_version() {
    let store = Store::new(StoreLimits::default(), 0);
    write(&store, "a", 0, Some("1")).unwrap();
    let mut cursor = store.ring(&Arc::from("configmaps")).cursor(1).unwrap();
    write(&store, "a", 1, Some("2")).unwrap();
    write(&store, "a", 2, None).unwrap();
    let mut events = Vec::new();
    cursor.take(10, &mut events).unwrap();
    let seen: Vec<_> = events.iter().map(|event| (event.kind, event.resource_version())).collect();
    assert_eq!(seen, [(EventKind::Modified, 2), (EventKind::Deleted, 3)]);
}

#[test]
fn a_cursor_that_fell_behind_the_ring_gets_an_error() {
    let limits = StoreLimits { ring_events_max: 2, ..StoreLimits::default() };
    let store = Store::new(limits, 0);
    let ring = store.ring(&Arc::from("configmaps"));
    let mut slow = ring.cursor(0).unwrap();
    for name in ["a", "b", "c"] {
        write(&store, name, 0, Some("1")).unwrap();
    }
    assert!(slow.take(10, &mut Vec::new()).is_err());
    assert!(ring.cursor(0).is_err());
    assert!(ring.cursor(1).is_ok());
}

#[test]
fn past_states_stay_readable_within_the_limit() {
    let limits = StoreLimits { snapshots_max: 2, ..StoreLimits::default() };
    let store = Store::new(limits, 0);
    write(&store, "a", 0, Some("1")).unwrap();
    write(&store, "b", 0, Some("1")).unwrap();
    assert!(store.snapshot_at(1).unwrap().get("configmaps", "ns", "b").is_none());
    write(&store, "c", 0, Some("1")).unwrap();
    assert!(store.snapshot_at(1).is_none());
}

#[tokio::test(start_paused = true)]
async fn states_of_paged_lists_are_kept_for_five_minutes() {
    let limits = StoreLimits { snapshots_max: 2, paged_snapshots_max: 2, ..StoreLimits::default() };
    let store = Store::new(limits, 0);
    write(&store, "a", 0, Some("1")).unwrap();
    let listed = store.snapshot();
    store.keep_for_pages(&listed);
    store.keep_for_pages(&listed);
    for number in 0..1000 {
        write(&store, &format!("b{number}"), 0, Some("1")).unwrap();
    }
    let found = store.snapshot_at(1).unwrap();
    assert_eq!(contents(&found), contents(&listed), "exactly what was listed");
    assert!(store.snapshot_at(2).is_none(), "nobody has asked for this one");
    tokio::time::advance(std::time::Duration::from_secs(300)).await;
    write(&store, "c", 0, Some("1")).unwrap();
    assert!(store.snapshot_at(1).is_none());
}

#[test]
fn the_number_of_paged_lists_is_bounded() {
    let limits = StoreLimits { snapshots_max: 1, paged_snapshots_max: 2, ..StoreLimits::default() };
    let store = Store::new(limits, 0);
    for name in ["a", "b", "c", "d"] {
        write(&store, name, 0, Some("1")).unwrap();
        store.keep_for_pages(&store.snapshot());
    }
    let known: Vec<bool> = (1..=4).map(|version| store.snapshot_at(version).is_some()).collect();
    assert_eq!(known, [false, false, true, true]);
    store.compact();
    assert!(store.snapshot_at(3).is_none());
}

#[test]
fn whoever_starts_to_wait_knows_the_newest_version() {
    let store = Store::new(StoreLimits::default(), 0);
    write(&store, "a", 0, Some("1")).unwrap();
    let mut newest = store.newest();
    assert!(!newest.has_changed().unwrap());
    assert_eq!(*newest.borrow_and_update(), 1);
    write(&store, "b", 0, Some("1")).unwrap();
    assert!(newest.has_changed().unwrap());
    assert_eq!(*newest.borrow_and_update(), 2);
    drop(newest);
    write(&store, "c", 0, Some("1")).unwrap();
    assert_eq!(*store.newest().borrow(), 3);
}

#[test]
fn states_before_initial_objects_are_known() {
    let object = |name: &str, version: u64| {
        let tree = json!({"metadata": {"name": name, "resourceVersion": version.to_string()}});
        let packed = Arc::clone(Stored::new(tree, version).packed());
        ("configmaps".into(), ObjectKey::new("", name), packed)
    };
    let objects = [object("a", 11), object("b", 12)];
    let store = Store::with_objects(StoreLimits::default(), 10, objects.into_iter());
    assert_eq!(store.resource_version(), 12);
    let count = |version| store.snapshot_at(version).map(|found| found.count("configmaps", ""));
    assert_eq!([1, 11, 12].map(count), [Some(0), Some(1), Some(2)]);
}
