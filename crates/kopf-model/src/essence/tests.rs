//! What counts as a change, in trees and in bytes.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Essence, EssenceScanner};
use crate::{FieldPath, Object};

fn build(object: &Object, extra: &[FieldPath], ignored: &[FieldPath]) -> Essence {
    super::build(object, extra, ignored, |_| true)
}

fn body() -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": {
            "name": "x", "uid": "u", "resourceVersion": "5", "finalizers": ["f"],
            "labels": {"l": "1"},
            "annotations": {
                "a": "1",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "kopf.zalando.org/last-handled-configuration": "{}",
                "sub.kopf.zalando.org/fn": "{}",
                "other-op.example.com/kopf-managed": "yes",
                "other-op.example.com/fn": "{}",
                "notkopf.zalando.org/fn": "kept",
                "kopf.dev/x": "kept",
            },
        },
        "status": {"phase": "Ready", "counter": 3},
        "spec": {"size": 1},
        "data": {"k": "v"},
    })
}

/// Parses a body as an object.
fn object(body: &Value) -> Object {
    Object::parse(body.to_string()).unwrap_or_else(|_| Object::from_value(body.clone()))
}

#[test]
fn system_fields_and_notes_of_operators_are_dropped() {
    assert_eq!(
        build(&object(&body()), &[], &[]).to_string(),
        concat!(
            r#"{"spec":{"size":1},"data":{"k":"v"},"metadata":{"labels":{"l":"1"},"#,
            r#""annotations":{"a":"1","notkopf.zalando.org/fn":"kept","kopf.dev/x":"kept"}}}"#
        )
    );
}

#[test]
fn extra_fields_are_added_and_ignored_fields_removed() {
    let extra = ["status.phase".into(), "metadata.finalizers".into(), "status.none".into()];
    let ignored = ["metadata.annotations".into(), "data.k".into(), "spec.none.deep".into()];
    let essence = build(&object(&body()), &extra, &ignored);
    assert_eq!(
        essence.to_string(),
        concat!(
            r#"{"spec":{"size":1},"metadata":{"labels":{"l":"1"},"finalizers":["f"]},"#,
            r#""status":{"phase":"Ready"}}"#
        )
    );
}

#[test]
fn empty_stanzas_are_ignored() {
    let body = json!({
        "metadata": {"name": "x", "labels": {}, "annotations": {"kopf.zalando.org/x": "1"}},
        "status": {},
    });
    assert_eq!(build(&object(&body), &["status".into()], &[]), json!({}));
}

fn scanner(extra: &[&str]) -> EssenceScanner {
    let extra = extra.iter().map(|field| FieldPath::from(*field)).collect();
    EssenceScanner::new(extra, vec!["own.example.com/".into(), "shared.example.com/key".into()])
}

#[test]
fn the_fingerprint_changes_with_the_essence_only() {
    let scanner = scanner(&["status.phase"]);
    let scan = |body: &Value| scanner.scan(&object(body)).unwrap();
    let original = scan(&body());
    let with = |path: &[&str], value: Value| {
        let mut changed = body();
        FieldPath::from_keys(path.iter().copied()).set(&mut changed, value);
        scan(&changed)
    };
    let annotations = |key| ["metadata", "annotations", key];
    assert_eq!(original, with(&["metadata", "resourceVersion"], json!("6")));
    assert_eq!(original, with(&["metadata", "finalizers"], json!([])));
    assert_eq!(original, with(&["status", "counter"], json!(4)));
    assert_eq!(original, with(&annotations("kopf.zalando.org/any"), json!("x")));
    assert_eq!(original, with(&annotations("other-op.example.com/any"), json!("x")));
    assert_eq!(original, with(&annotations("own.example.com/any"), json!("x")));
    assert_eq!(original, with(&annotations("shared.example.com/key"), json!("x")));

    assert_ne!(original, with(&["spec", "size"], json!(2)));
    assert_ne!(original, with(&["data", "k"], json!("w")));
    assert_ne!(original, with(&["new"], json!({})));
    assert_ne!(original, with(&["status", "phase"], json!("Failed")));
    assert_ne!(original, with(&["metadata", "labels", "l"], json!("2")));
    assert_ne!(original, with(&annotations("a"), json!("2")));
    assert_ne!(original, with(&annotations("shared.example.com/other"), json!("x")));
}

#[test]
fn empty_stanzas_equal_absent_ones_in_texts() {
    for metadata in [r#"{}"#, r#"{"labels":{},"annotations":null}"#, r#"{"labels" : { } }"#] {
        let raw =
            format!(r#"{{"kind":"K","metadata":{metadata},"spec":{{"a":-0.5}},"status":{{}}}}"#);
        let object = Object::parse(raw).unwrap();
        assert_eq!(build(&object, &[], &[]).text(), r#"{"spec":{"a":-0.5}}"#, "{metadata}");
    }
}

#[test]
fn an_unusual_object_has_no_fingerprint() {
    for body in [json!([]), json!({"metadata": 1}), json!({"metadata": {"name": 1}})] {
        let object = Object::from_value(body.clone());
        assert!(scanner(&[]).scan(&object).is_err(), "{body}");
    }
}

fn bodies() -> impl Strategy<Value = Value> {
    let map = |keys: &'static str, values: &'static str| {
        prop::collection::vec((keys, values), 0..3).prop_map(|entries| {
            entries.into_iter().map(|(k, v)| (k, Value::from(v))).collect::<Map<_, _>>()
        })
    };
    let keys = "(a|b|kopf\\.zalando\\.org/x|o\\.p/kopf-managed|o\\.p/x|\"q\\\\)";
    (map(keys, "[12]"), map("[ab]", "[12]"), map("[ab]", "[12]"), map("[ab]", "[12]"), 0..3)
        .prop_map(|(annotations, labels, spec, status, version)| {
            json!({
                "apiVersion": "v1", "kind": "K",
                "metadata": {"annotations": annotations, "labels": labels, "generation": version},
                "spec": spec, "status": status,
            })
        })
}

fn trees() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-20..20_i64).prop_map(Value::from),
        (-999..999_i32).prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        ".*".prop_map(Value::from),
        "[ -~\t\r\n]*".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(".{0,4}", inner, 0..4).prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    #[test]
    fn the_text_of_an_essence_is_the_same_with_and_without_a_tree(
        body in bodies(), content in trees(), is_pretty in any::<bool>(),
    ) {
        let mut body = body;
        body["spec"]["content"] = content;
        let raw = if is_pretty { format!("{body:#}") } else { body.to_string() };
        let object = Object::parse(raw).unwrap();
        let of_tree = build(&object, &[], &["no.such.field".into()]);
        let of_text = build(&object, &[], &[]);
        prop_assert_eq!(of_text.text(), of_tree.text());
        prop_assert_eq!(of_text.value(), of_tree.value());
    }

    #[test]
    fn equal_fingerprints_mean_equal_essences(one in bodies(), two in bodies()) {
        let extra = [FieldPath::from("status.a")];
        let scanner = EssenceScanner::new(extra.to_vec(), Vec::new());
        let hash = |body: &Value| scanner.scan(&object(body)).unwrap();
        if hash(&one) == hash(&two) {
            prop_assert_eq!(build(&object(&one), &extra, &[]), build(&object(&two), &extra, &[]));
        } else {
            // Not required for correctness, but the fingerprint would be useless otherwise.
            prop_assert_ne!(one, two);
        }
    }
}

#[test]
fn the_last_handled_state_counts_only_if_requested() {
    let notes = vec!["kopf.zalando.org/last-handled-configuration".to_owned()];
    let field = FieldPath::from("status.kopf.last");
    let scanner = EssenceScanner::new(Vec::new(), Vec::new()).with_notes(notes, vec![field]);
    let scan = |body: &Value| scanner.scan(&object(body)).unwrap();
    let plain = |body: &Value| scan(body).essence;
    let noted = |body: &Value| scan(body).noted;
    let before = body();
    let annotation = "/metadata/annotations/kopf.zalando.org~1last-handled-configuration";
    let mut edited = before.clone();
    *edited.pointer_mut(annotation).unwrap() = json!("{\"spec\":1}");
    let mut removed = before.clone();
    let annotations = removed.pointer_mut("/metadata/annotations").unwrap();
    annotations
        .as_object_mut()
        .unwrap()
        .shift_remove("kopf.zalando.org/last-handled-configuration");
    let mut in_status = before.clone();
    in_status["status"]["kopf"] = json!({"last": "{}"});
    for after in [edited, removed, in_status] {
        assert_eq!(plain(&before), plain(&after), "{after}");
        assert_ne!(noted(&before), noted(&after), "{after}");
    }
    let mut others = before.clone();
    others["status"]["kopf"] = json!({"progress": {}});
    others["metadata"]["annotations"]["kopf.zalando.org/touch-dummy"] = json!("now");
    assert_eq!(noted(&before), noted(&others));
}

/// An object whose spec has this many levels, with unnormalised content at the bottom.
fn deep(levels: usize, bottom: &str) -> Object {
    let metadata = r#"{"name":"a","labels":{"l":"x"}}"#;
    let (open, close) = (r#"{"a":"#.repeat(levels), "}".repeat(levels));
    let raw = format!(r#"{{"kind":"K","metadata":{metadata},"spec":{open}{bottom}{close}}}"#);
    Object::parse(raw).unwrap()
}

#[test]
fn deep_objects_have_complete_essences() {
    for bottom in ["1.50", "\"\u{fc}\"", "1"] {
        let object = deep(200, bottom);
        let essence = build(&object, &[], &[]);
        let whole = object.value();
        assert_eq!((&essence["spec"], essence.is_partial()), (&whole["spec"], false));
        assert!(whole["spec"]["a"]["a"].is_object());
        let same: Value = crate::json::deep::read(essence.text().as_bytes()).unwrap();
        assert_eq!(essence, same);
    }
}

#[test]
fn essences_of_too_deep_objects_are_partial() {
    let mut essence = build(&deep(1000, "1.50"), &[], &[]);
    assert!(essence.is_partial());
    essence.edit(|tree| drop(tree.as_object_mut().unwrap().shift_remove("x")));
    assert!(essence.is_partial());
    assert_eq!(essence["metadata"]["labels"]["l"], "x");
}

/// Code that recurses into a tree needs stack for it.
#[test]
fn the_deepest_trees_fit_into_half_a_stack() {
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    let work = || {
        let levels = crate::json::deep::LEVELS_MAX - 2;
        let (one, other) = (deep(levels, "1.50"), deep(levels, "2.50"));
        let essence = |object: &Object| build(object, &[], &["x".into()]);
        let (one, other) = (essence(&one), essence(&other));
        assert_eq!(crate::Diff::between(Some(&one), Some(&other)).iter().count(), 1);
        assert_ne!(one.text(), other.text());
        assert_ne!(one.value().clone(), *other.value());
    };
    thread.spawn(work).unwrap().join().unwrap();
}

#[test]
fn stored_texts_with_empty_stanzas_need_a_tree() {
    let texts = [
        r#"{"spec":{},"metadata":{}}"#,
        r#"{"spec":{},"metadata":null}"#,
        r#"{"metadata":{"labels":{}}}"#,
        r#"{"metadata":{"annotations":null,"labels":{"a":"b"}}}"#,
        r#"{"spec":1,"status":{}}"#,
        r#"{"spec":1.5}"#,
        "null",
        "[]",
    ];
    for text in texts {
        assert!(Essence::from_stored(text).is_none(), "{text}");
    }
    let usual = r#"{"spec":{"empty":{},"none":null},"metadata":{"labels":{"a":"b"}}}"#;
    let essence = Essence::from_stored(usual).expect("it is usual");
    assert_eq!(essence.text(), usual);
}

#[test]
fn only_unwanted_annotations_make_a_tree() {
    let text = r#"{"spec":1,"metadata":{"annotations":{"a":"1","b/c":"2"}}}"#;
    let mut essence = Essence::from_stored(text).expect("it is usual");
    super::retain_annotations(&mut essence, |_| true);
    assert_eq!(essence.only_text(), Some(text));
    super::retain_annotations(&mut essence, |key| key != "a");
    assert_eq!(essence.text(), r#"{"spec":1,"metadata":{"annotations":{"b/c":"2"}}}"#);
    super::retain_annotations(&mut essence, |_| false);
    assert_eq!(essence.text(), r#"{"spec":1}"#);
}
