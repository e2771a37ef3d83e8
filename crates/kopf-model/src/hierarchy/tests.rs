//! Children of all forms and their owners.

use serde_json::{Value, json};

use super::{
    Adoption, adjust_namespace, adopt, append_owner_reference, build_object_reference,
    harmonize_naming, label, remove_owner_reference,
};

fn owner() -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {"name": "own", "namespace": "ns", "uid": "u1", "labels": {"l": "1"}},
    })
}

#[test]
fn adoption_sets_missing_fields() {
    let mut child = json!({"kind": "Deployment", "spec": {"template": {"spec": {}}}});
    let nested = vec!["spec.template".into(), "spec.absent".into()];
    adopt(&mut child, &owner(), &Adoption { nested, ..Adoption::default() }).unwrap();
    assert_eq!(
        child,
        json!({
            "kind": "Deployment",
            "spec": {"template": {"spec": {}, "metadata": {"labels": {"l": "1"}}}},
            "metadata": {
                "ownerReferences": [{
                    "controller": true, "blockOwnerDeletion": true,
                    "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "name": "own", "uid": "u1",
                }],
                "generateName": "own-", "namespace": "ns", "labels": {"l": "1"},
            },
        })
    );
    let once = child.clone();
    adopt(&mut child, &owner(), &Adoption::default()).unwrap();
    assert_eq!(child, once, "adopting twice changes nothing");
}

#[test]
fn existing_fields_of_children_stay_unless_forced() {
    let metadata = json!({"name": "c", "namespace": "other", "labels": {"l": "2"}});
    let mut child = json!({"metadata": metadata});
    adopt(&mut child, &owner(), &Adoption::default()).unwrap();
    assert_eq!(child["metadata"]["name"], "c");
    assert_eq!(child["metadata"]["namespace"], "other");
    assert_eq!(child["metadata"]["labels"], json!({"l": "2"}));
    let forced = Adoption { is_forced: true, is_strict: true, ..Adoption::default() };
    adopt(&mut child, &owner(), &forced).unwrap();
    assert_eq!(child["metadata"]["name"], "own");
    assert_eq!(child["metadata"]["namespace"], "ns");
    assert_eq!(child["metadata"]["labels"], json!({"l": "1"}));
}

#[test]
fn lists_are_traversed_and_other_values_are_rejected() {
    let mut children = json!([{}, [null, {"a": 1}]]);
    append_owner_reference(&mut children, &owner(), false, false).unwrap();
    assert_eq!(children[1][1]["metadata"]["ownerReferences"][0]["controller"], json!(false));
    remove_owner_reference(&mut children, &owner()).unwrap();
    assert_eq!(children[0]["metadata"]["ownerReferences"], json!([]));
    let error = label(&mut json!("text"), &serde_json::Map::new(), false, &[]).unwrap_err();
    assert!(error.to_string().contains("text"));
}

#[test]
fn names_are_strict_or_generated() {
    let mut child = json!({"metadata": {"generateName": "g-"}});
    harmonize_naming(&mut child, "n", false, true).unwrap();
    assert_eq!(child, json!({"metadata": {"generateName": "g-"}}));
    harmonize_naming(&mut child, "n", true, true).unwrap();
    assert_eq!(child, json!({"metadata": {"name": "n"}}));
    harmonize_naming(&mut child, "n", true, false).unwrap();
    assert_eq!(child, json!({"metadata": {"generateName": "n-"}}));
}

#[test]
fn cluster_scoped_owners_leave_the_namespace_alone_unless_forced() {
    let mut child = json!({"metadata": {"namespace": "x"}});
    adjust_namespace(&mut child, None, false).unwrap();
    assert_eq!(child["metadata"]["namespace"], "x");
    adjust_namespace(&mut child, None, true).unwrap();
    assert_eq!(child, json!({"metadata": {}}));
}

#[test]
fn references_have_no_empty_parts() {
    assert_eq!(
        build_object_reference(&json!({"kind": "K", "metadata": {"name": "n", "namespace": ""}})),
        json!({"kind": "K", "name": "n"})
    );
}
