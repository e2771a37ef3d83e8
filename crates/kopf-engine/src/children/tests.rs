//! Observations and responses in unusual orders, and what is known afterwards.

use serde_json::json;

use super::*;

fn desired() -> Desired {
    let resource = Resource {
        group: String::new(),
        version: "v1".into(),
        plural: "services".into(),
        kind: "Service".into(),
        singular: "service".into(),
        shortcuts: BTreeSet::new(),
        categories: BTreeSet::new(),
        subresources: BTreeSet::new(),
        namespaced: true,
        preferred: true,
        verbs: BTreeSet::new(),
    };
    Desired { resource: Arc::new(resource), namespace: None }
}

fn child(name: &str, owner: &str, version: u64) -> Object {
    Object::from_value(json!({"metadata": {
        "name": name, "namespace": "ns", "uid": format!("uid-{name}"),
        "labels": {"kopf.dev/owner": owner}, "resourceVersion": version.to_string(),
    }}))
}

fn store() -> ChildStore {
    let store = ChildStore::default();
    store.begin(1, desired());
    store.list_begun(1);
    store
}

fn names(store: &ChildStore, owner: &str) -> Vec<String> {
    store.of(owner, [].iter()).iter().map(|child| child.object.name().to_owned()).collect()
}

#[test]
fn nothing_is_known_before_the_list_ends() {
    let store = store();
    let selectors = [Selector::exact("", "v1", "services")];
    assert!(matches!(store.knows(selectors.iter()), Knowledge::Partial));
    assert!(store.list_ended(1, Version::parse("5")).1);
    assert!(matches!(store.knows(selectors.iter()), Knowledge::Complete(_)));
    assert!(!store.list_ended(1, Version::parse("5")).1, "only once");
    let others = [Selector::exact("", "v1", "pods")];
    assert!(matches!(store.knows(others.iter()), Knowledge::Unserved(_)));
}

#[test]
fn own_writes_are_not_reported() {
    let store = store();
    store.put(&desired().resource, child("a", "u1", 7));
    assert_eq!(store.see(1, child("a", "u1", 7), false), Vec::<String>::new());
    assert_eq!(store.see(1, child("a", "u1", 8), false), ["u1"]);
}

#[test]
fn responses_after_the_deletion_are_ignored() {
    let store = store();
    assert_eq!(store.see(1, child("a", "u1", 7), false), ["u1"]);
    assert_eq!(store.see(1, child("a", "u1", 9), true), ["u1"]);
    store.put(&desired().resource, child("a", "u1", 8));
    assert_eq!(names(&store, "u1"), Vec::<String>::new());
    store.put(&desired().resource, child("a", "u1", 10));
    assert_eq!(names(&store, "u1"), ["a"], "it only lost its label");
}

#[test]
fn children_missing_in_a_list_are_gone_unless_they_are_newer() {
    let store = store();
    store.see(1, child("old", "u1", 3), false);
    store.list_ended(1, Version::parse("5"));
    store.list_begun(1);
    store.put(&desired().resource, child("new", "u2", 11));
    assert_eq!(store.list_ended(1, Version::parse("10")).0, ["u1"]);
    assert_eq!(names(&store, "u2"), ["new"]);
}

#[test]
fn both_owners_are_reported_when_a_child_changes_its_owner() {
    let store = store();
    store.see(1, child("a", "u1", 7), false);
    let mut owners = store.see(1, child("a", "u2", 8), false);
    owners.sort();
    assert_eq!(owners, ["u1", "u2"]);
    assert_eq!(names(&store, "u1"), Vec::<String>::new());
}
