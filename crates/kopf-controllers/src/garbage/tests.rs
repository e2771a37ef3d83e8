//! The rules of garbage collection, with an in-memory world.

use serde_json::{Value, json};

use super::*;
use crate::collections::{CONFIG_MAPS, NODES};
use crate::test_world::Simulation;
use crate::world::Collection;

const PARENTS: Collection = CONFIG_MAPS;

fn simulation() -> Simulation {
    let mut simulation = Simulation::new(vec![Box::new(GarbageCollector::default())]);
    simulation.world.serve(PARENTS, "ConfigMap", true);
    simulation.world.serve(NODES, "Node", false);
    simulation
}

fn create(simulation: &mut Simulation, name: &str, owners: &[(&str, bool)]) {
    let owners: Vec<Value> = owners
        .iter()
        .map(|(owner, blocks)| {
            let found = simulation.read(&PARENTS, "ns", owner);
            let uid = if found.is_null() { "gone" } else { uid(&found) };
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid,
                    "blockOwnerDeletion": blocks })
        })
        .collect();
    let mut object = json!({ "metadata": { "name": name, "namespace": "ns" } });
    if !owners.is_empty() {
        object["metadata"]["ownerReferences"] = json!(owners);
    }
    simulation.create(&PARENTS, object);
    simulation.settle();
}

fn delete(simulation: &mut Simulation, name: &str, finalizer: Option<&str>) {
    simulation.delete(&Key::new(PARENTS, "ns", name), finalizer);
    simulation.settle();
}

fn exists(simulation: &Simulation, name: &str) -> bool {
    !simulation.read(&PARENTS, "ns", name).is_null()
}

#[test]
fn dependents_follow_their_owner() {
    let mut simulation = simulation();
    create(&mut simulation, "owner", &[]);
    create(&mut simulation, "child", &[("owner", false)]);
    create(&mut simulation, "grandchild", &[("child", false)]);
    delete(&mut simulation, "owner", None);
    assert!(!exists(&simulation, "child"));
    assert!(!exists(&simulation, "grandchild"));
}

#[test]
fn a_dependent_of_an_absent_owner_is_deleted() {
    let mut simulation = simulation();
    create(&mut simulation, "dangling", &[("nobody", false)]);
    assert!(!exists(&simulation, "dangling"));
}

#[test]
fn one_existing_owner_is_enough_and_the_absent_one_is_removed() {
    let mut simulation = simulation();
    create(&mut simulation, "first", &[]);
    create(&mut simulation, "second", &[]);
    create(&mut simulation, "child", &[("first", false), ("second", false)]);
    delete(&mut simulation, "first", None);
    let child = simulation.read(&PARENTS, "ns", "child");
    assert_eq!(owners(&child).len(), 1);
    assert_eq!(text(&owners(&child)[0], &["name"]), "second");
}

#[test]
fn foreground_deletion_waits_for_blocking_dependents() {
    let mut simulation = simulation();
    create(&mut simulation, "owner", &[]);
    create(&mut simulation, "child", &[("owner", true)]);
    let mut child = simulation.read(&PARENTS, "ns", "child");
    child["metadata"]["finalizers"] = json!(["test.io/hold"]);
    simulation.update(&PARENTS, child);
    simulation.settle();
    delete(&mut simulation, "owner", Some(FOREGROUND));
    assert!(exists(&simulation, "owner"));
    let mut child = simulation.read(&PARENTS, "ns", "child");
    assert!(fields::is_deleting(&child));
    child["metadata"]["finalizers"] = json!([]);
    simulation.update(&PARENTS, child);
    simulation.settle();
    assert!(!exists(&simulation, "owner"));
}

#[test]
fn foreground_deletion_ignores_dependents_that_do_not_block() {
    let mut simulation = simulation();
    create(&mut simulation, "owner", &[]);
    create(&mut simulation, "child", &[("owner", false)]);
    delete(&mut simulation, "owner", Some(FOREGROUND));
    assert!(!exists(&simulation, "owner"));
    assert!(!exists(&simulation, "child"));
}

#[test]
fn orphans_stay_without_their_owner() {
    let mut simulation = simulation();
    create(&mut simulation, "owner", &[]);
    create(&mut simulation, "child", &[("owner", true)]);
    delete(&mut simulation, "owner", Some(ORPHAN));
    assert!(!exists(&simulation, "owner"));
    assert!(owners(&simulation.read(&PARENTS, "ns", "child")).is_empty());
}

#[test]
fn policies_end_for_objects_without_dependents() {
    for finalizer in [FOREGROUND, ORPHAN] {
        let mut simulation = simulation();
        create(&mut simulation, "lonely", &[]);
        delete(&mut simulation, "lonely", Some(finalizer));
        assert!(!exists(&simulation, "lonely"), "{finalizer}");
    }
}

#[test]
fn owners_in_other_namespaces_do_not_count() {
    let mut simulation = simulation();
    create(&mut simulation, "owner", &[]);
    let owner = simulation.read(&PARENTS, "ns", "owner");
    simulation.create(
        &PARENTS,
        json!({ "metadata": { "name": "far", "namespace": "other", "ownerReferences": [
            { "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid(&owner) },
        ] } }),
    );
    simulation.settle();
    assert!(simulation.read(&PARENTS, "other", "far").is_null());
}

#[test]
fn namespaced_owners_of_cluster_wide_objects_prove_nothing() {
    let mut simulation = simulation();
    simulation.create(
        &NODES,
        json!({ "metadata": { "name": "node", "ownerReferences": [
            { "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "gone" },
        ] } }),
    );
    simulation.settle();
    assert!(!simulation.read(&NODES, "", "node").is_null());
}

#[test]
fn owners_of_unknown_kinds_prove_nothing() {
    let mut simulation = simulation();
    simulation.create(
        &PARENTS,
        json!({ "metadata": { "name": "kept", "namespace": "ns", "ownerReferences": [
            { "apiVersion": "no.io/v1", "kind": "Nothing", "name": "x", "uid": "gone" },
        ] } }),
    );
    simulation.settle();
    assert!(exists(&simulation, "kept"));
}

#[test]
fn a_cycle_of_blocking_owners_is_resolved() {
    let mut simulation = simulation();
    create(&mut simulation, "first", &[]);
    create(&mut simulation, "second", &[("first", true)]);
    let second = simulation.read(&PARENTS, "ns", "second");
    let mut first = simulation.read(&PARENTS, "ns", "first");
    first["metadata"]["ownerReferences"] = json!([
        { "apiVersion": "v1", "kind": "ConfigMap", "name": "second", "uid": uid(&second),
          "blockOwnerDeletion": true },
    ]);
    simulation.update(&PARENTS, first);
    simulation.settle();
    delete(&mut simulation, "first", Some(FOREGROUND));
    assert!(!exists(&simulation, "first"));
    assert!(!exists(&simulation, "second"));
}
