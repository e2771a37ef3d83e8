//! Sizes of volumes, and which volume a claim is bound to.

use serde_json::{Value, json};

use super::*;
use crate::test_world::{TestWorld, describe, react};

#[test]
fn quantities_compare_across_units() {
    assert_eq!(quantity("1Gi"), quantity("1024Mi"));
    assert!(quantity("1Gi") > quantity("1G"));
    assert_eq!(quantity("1.5k"), quantity("1500"));
    assert_eq!(quantity("nonsense"), 0);
}

fn volume(name: &str, size: &str) -> Value {
    json!({ "metadata": { "name": name, "uid": name }, "spec": {
        "capacity": { "storage": size }, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
    } })
}

#[test]
fn a_claim_takes_the_smallest_volume_that_fits() {
    let mut world = TestWorld::default();
    for (name, size) in [("small", "1Gi"), ("large", "9Gi"), ("fitting", "3Gi")] {
        world.put(&VOLUMES, volume(name, size));
    }
    let change = world.put(&CLAIMS, claim(&[CLAIM_PROTECTION]));
    let outcomes = react(&mut Claims, &change, &world);
    assert_eq!(describe(&outcomes), ["update persistentvolumes//fitting"]);
}

fn claim(finalizers: &[&str]) -> Value {
    let metadata = json!({"name": "c", "namespace": "n", "uid": "u", "finalizers": finalizers});
    json!({ "metadata": metadata, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "",
        "resources": { "requests": { "storage": "2Gi" } },
    } })
}

#[test]
fn a_claim_gets_its_finalizer_back() {
    let mut world = TestWorld::default();
    let change = world.put(&CLAIMS, claim(&["a.b/c"]));
    let found = describe(&react(&mut Claims, &change, &world));
    let finalizers = "\"finalizers\":[\"a.b/c\",\"kubernetes.io/pvc-protection\"]";
    assert!(found[0].contains(finalizers), "{found:?}");
}
