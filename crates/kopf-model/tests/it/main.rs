//! The public API of the model compared with the real Kopf.
//!
//! The vectors come from `make_vectors.py`, which runs Kopf itself on random inputs.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::sync::Arc;

use kopf_model::keys::KeyMaker;
use kopf_model::namespace::NamespacePattern;
use kopf_model::selector::Selected;
use kopf_model::storage::{
    AnnotationsDiffBase, AnnotationsProgress, CompactDiffBase, DiffBaseStorage, ProgressStorage,
    SmartProgress, StatusProgress,
};
use kopf_model::{
    Diff, DiffScope, FieldPath, Object, Patch, ProgressRecord, Resource, Selector, StoredForm,
};
use serde_json::{Value, json};

fn vectors(group: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("kopf_vectors.json")).unwrap();
    all[group].as_array().unwrap().clone()
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

fn fields(list: &Value) -> Vec<FieldPath> {
    texts(list).into_iter().map(FieldPath::from).collect()
}

fn keys(case: &Value) -> KeyMaker {
    KeyMaker::new(case["prefix"].as_str().unwrap()).unwrap()
}

fn smart(case: &Value) -> SmartProgress {
    SmartProgress {
        annotations: AnnotationsProgress::new(keys(case)),
        status: StatusProgress::named("kopf"),
    }
}

/// Parses a body as an object.
fn object(body: &Value) -> Object {
    Object::parse(body.to_string()).unwrap_or_else(|_| Object::from_value(body.clone()))
}

fn merge(patch: Patch) -> Value {
    Value::Object(patch.merge)
}

#[test]
fn essences_and_their_stored_form_are_those_of_kopf() {
    for case in vectors("essences") {
        let storage = AnnotationsDiffBase::new(keys(&case), "last-handled-configuration")
            .ignoring(fields(&case["ignored"]));
        let body = &case["body"];
        let object = object(body);
        let mut essence = storage.build(&object, &fields(&case["extra"])).unwrap();
        smart(&case).clear(&mut essence).unwrap();
        assert_eq!(essence, case["essence"], "{case}");
        let mut patch = Patch::default();
        storage.store(&essence, &object, &mut patch).unwrap();
        assert_eq!(merge(patch), case["patch"], "{case}");
        let mut patch = Patch::default();
        let form = CompactDiffBase::new(storage).store(&essence, &object, &mut patch).unwrap();
        assert_eq!((form, merge(patch)), (StoredForm::Plain, case["patch"].clone()));
    }
}

#[test]
fn state_stored_by_kopf_is_read() {
    for case in vectors("essences") {
        let storage = AnnotationsDiffBase::new(keys(&case), "last-handled-configuration");
        let patch = Patch { merge: case["patch"].as_object().unwrap().clone(), ..Patch::default() };
        let handled = patch.applied_to(&case["body"]).unwrap();
        assert_eq!(
            storage.fetch(&object(&handled), &json!({}).into()).unwrap(),
            Some(case["essence"].clone().into())
        );
    }
}

#[test]
fn progress_is_stored_and_read_as_kopf_does() {
    for case in vectors("progress") {
        let (storage, body) = (smart(&case), &case["body"]);
        let record = ProgressRecord::from_value(&case["record"]);
        let key = case["key"].as_str().unwrap();
        let mut patch = Patch::default();
        storage.store(key, &record, &object(body), &mut patch).unwrap();
        assert_eq!(merge(patch.clone()), case["patch"], "{case}");
        assert_eq!(
            storage.fetch(key, &object(&patch.applied_to(body).unwrap())).unwrap(),
            Some(record)
        );
        let mut touch = Patch::default();
        storage.touch(&object(body), &mut touch, Some("now")).unwrap();
        assert_eq!(merge(touch), case["touch"], "{case}");
    }
}

/// The items in an order that does not depend on the order of keys.
fn flat(diff: &Diff) -> Vec<String> {
    let mut items: Vec<_> = diff
        .iter()
        .map(|item| {
            let field: Vec<&str> = item.field.keys().collect();
            json!([item.operation.as_str(), field, item.old, item.new]).to_string()
        })
        .collect();
    items.sort();
    items
}

fn sorted(items: &Value) -> Vec<String> {
    let mut items: Vec<_> = items.as_array().unwrap().iter().map(Value::to_string).collect();
    items.sort();
    items
}

#[test]
fn diffs_are_those_of_kopf() {
    for case in vectors("diffs") {
        let diff = Diff::between(Some(&case["old"]), Some(&case["new"]));
        assert_eq!(flat(&diff), sorted(&case["diff"]), "{case}");
        let reduced = diff.reduce(&FieldPath::from_keys(texts(&case["path"])));
        assert_eq!(flat(&reduced), sorted(&case["reduced"]), "{case}");
        let left = Diff::scoped(Some(&case["old"]), Some(&case["new"]), DiffScope::Left);
        assert_eq!(flat(&left), sorted(&case["left"]), "{case}");
    }
}

fn resources() -> Vec<Arc<Resource>> {
    let resource = |case: Value| {
        let text = |key: &str| case[key].as_str().unwrap().to_owned();
        Arc::new(Resource {
            group: text("group"),
            version: text("version"),
            plural: text("plural"),
            kind: text("kind"),
            singular: text("kind").to_lowercase(),
            shortcuts: texts(&case["shortcuts"]).into_iter().map(str::to_owned).collect(),
            categories: BTreeSet::from(["all".to_owned()]),
            subresources: BTreeSet::new(),
            namespaced: true,
            preferred: case["preferred"].as_bool().unwrap(),
            verbs: BTreeSet::new(),
        })
    };
    vectors("resources").into_iter().map(resource).collect()
}

#[test]
fn selectors_choose_as_kopf_does() {
    let resources = resources();
    for case in vectors("selectors") {
        let selector = Selector::parse(&texts(&case["arguments"])).unwrap();
        let matches: Vec<_> = resources.iter().map(|one| selector.matches(one)).collect();
        assert_eq!(json!(matches), case["matches"], "{case}");
        assert_eq!(json!(selector.is_specific()), case["specific"], "{case}");
        let (Selected::Resources(found) | Selected::Ambiguous(found)) = selector.select(&resources);
        let found: Vec<_> = found
            .iter()
            .map(|one| resources.iter().position(|known| known == one).unwrap())
            .collect();
        assert_eq!(json!(found), case["selected"], "{case}");
    }
}

#[test]
fn namespaces_match_as_in_kopf() {
    for case in vectors("namespaces") {
        let pattern = NamespacePattern::new(case["pattern"].as_str().unwrap());
        for (name, expected) in case["names"].as_object().unwrap() {
            assert_eq!(json!(pattern.matches(name)), *expected, "{pattern} on {name}");
        }
    }
}
