//! Stored state and progress: written, read, purged, and made to fit.

use serde_json::{Value, json};

use super::{
    ANNOTATIONS_SIZE_MAX, AnnotationsDiffBase, AnnotationsProgress, CompactDiffBase,
    DiffBaseStorage, MultiDiffBase, MultiProgress, ProgressStorage, SmartProgress, StatusDiffBase,
    StatusProgress, StoredForm,
};
use crate::diff::Diff;
use crate::essence::Essence;
use crate::keys::KeyMaker;
use crate::object::Object;
use crate::patch::Patch;
use crate::record::{Absent, ProgressRecord, parse_time};

const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

fn essence(tree: Value) -> Essence {
    Essence::from(tree)
}

fn keys(prefix: &str) -> KeyMaker {
    KeyMaker::new(prefix).unwrap()
}

fn default_diffbase() -> AnnotationsDiffBase {
    AnnotationsDiffBase::new(keys("kopf.zalando.org"), "last-handled-configuration")
}

fn smart() -> SmartProgress {
    SmartProgress {
        annotations: AnnotationsProgress::new(keys("kopf.zalando.org")),
        status: StatusProgress::named("kopf"),
    }
}

/// Parses a body as an object.
fn object(body: &Value) -> Object {
    Object::parse(body.to_string()).unwrap_or_else(|_| Object::from_value(body.clone()))
}

fn merge(patch: &Patch) -> Value {
    Value::Object(patch.merge.clone())
}

fn record() -> ProgressRecord {
    let started = parse_time("2026-11-15T18:53:43.155912Z");
    ProgressRecord { started, purpose: Some("create".into()), ..ProgressRecord::default() }
}

const RECORD: &str = concat!(
    r#"{"started":"2026-11-15T18:53:43.155912+00:00","purpose":"create","#,
    r#""retries":0,"success":false,"failure":false}"#
);

#[test]
fn the_last_handled_state_is_compact_json_with_a_newline() {
    let body = json!({"metadata": {"labels": {"l": "ü"}}, "spec": {"a": 1}});
    let storage = default_diffbase();
    let mut patch = Patch::default();
    let essence = storage.build(&object(&body), &[]).unwrap();
    assert_eq!(storage.store(&essence, &object(&body), &mut patch).unwrap(), StoredForm::Plain);
    let text = "{\"spec\":{\"a\":1},\"metadata\":{\"labels\":{\"l\":\"\\u00fc\"}}}\n";
    assert_eq!(merge(&patch), json!({"metadata": {"annotations": {LAST_HANDLED: text}}}));
    let handled = patch.applied_to(&body).unwrap();
    assert_eq!(storage.fetch(&object(&handled), &essence).unwrap(), Some(essence.clone()));
    assert_eq!(storage.build(&object(&handled), &[]).unwrap(), essence);
}

#[test]
fn foreign_prefixes_are_marked_once() {
    let storage = AnnotationsDiffBase::new(keys("my.op"), "key");
    let mut patch = Patch::default();
    storage.store(&essence(json!({})), &object(&json!({})), &mut patch).unwrap();
    let annotations = json!({"my.op/key": "{}\n", "my.op/kopf-managed": "yes"});
    assert_eq!(merge(&patch), json!({"metadata": {"annotations": annotations}}));
    let body = json!({"metadata": {"annotations": {"my.op/kopf-managed": "yes"}}});
    let mut patch = Patch::default();
    storage.store(&essence(json!({})), &object(&body), &mut patch).unwrap();
    assert_eq!(merge(&patch), json!({"metadata": {"annotations": {"my.op/key": "{}\n"}}}));
}

#[test]
fn null_is_absent_and_garbage_is_an_error() {
    let storage = default_diffbase();
    let body = |text: &str| json!({"metadata": {"annotations": {LAST_HANDLED: text}}});
    assert_eq!(storage.fetch(&object(&body("null\n")), &essence(json!({}))).unwrap(), None);
    let error = storage.fetch(&object(&body("{")), &essence(json!({}))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the stored state in annotation kopf.zalando.org/last-handled-configuration is malformed"
    );
}

#[test]
fn the_status_storage_keeps_a_string_without_a_newline() {
    let storage = StatusDiffBase::named("myop");
    let mut patch = Patch::default();
    storage.store(&essence(json!({"spec": {}})), &object(&json!({})), &mut patch).unwrap();
    let expected = json!({"status": {"myop": {"last-handled-configuration": "{\"spec\":{}}"}}});
    assert_eq!(merge(&patch), expected);
    assert_eq!(
        storage.fetch(&object(&expected), &essence(json!({}))).unwrap(),
        Some(essence(json!({"spec": {}})))
    );
    assert_eq!(storage.build(&object(&expected), &["status".into()]).unwrap(), json!({}));
}

#[test]
fn several_storages_write_everywhere_and_read_the_first() {
    let storage =
        MultiDiffBase(vec![Box::new(default_diffbase()), Box::new(StatusDiffBase::named("kopf"))]);
    let mut patch = Patch::default();
    storage.store(&essence(json!({"spec": 1})), &object(&json!({})), &mut patch).unwrap();
    let body = merge(&patch);
    assert_eq!(
        storage.fetch(&object(&body), &essence(json!({}))).unwrap(),
        Some(essence(json!({"spec": 1})))
    );
    let only_status = json!({"status": body["status"]});
    assert_eq!(
        storage.fetch(&object(&only_status), &essence(json!({}))).unwrap(),
        Some(essence(json!({"spec": 1})))
    );
    assert_eq!(storage.build(&object(&body), &["status".into()]).unwrap(), json!({}));
}

#[test]
fn progress_is_stored_under_all_key_versions_and_purged_from_all() {
    let storage = smart();
    let id = "x".repeat(47);
    let mut patch = Patch::default();
    storage.store(&id, &record(), &object(&json!({})), &mut patch).unwrap();
    let v2 = &*format!("kopf.zalando.org/{id}");
    let v1 = &*format!("kopf.zalando.org/{}-xRCOAQ", "x".repeat(39));
    let body = merge(&patch);
    assert_eq!(body, json!({"metadata": {"annotations": {v2: RECORD, v1: RECORD}}}));
    assert_eq!(storage.fetch(&id, &object(&body)).unwrap(), Some(record()));

    let mut purge = Patch::default();
    storage.purge(&id, &object(&body), &mut purge).unwrap();
    assert_eq!(merge(&purge), json!({"metadata": {"annotations": {v2: null, v1: null}}}));
    storage.purge(&id, &object(&json!({})), &mut patch).unwrap();
    assert!(patch.is_empty(), "what was only in the patch leaves no trace");
}

#[test]
fn progress_of_old_releases_is_read_and_purged_from_the_status() {
    let storage = smart();
    let body = json!({"status": {"kopf": {"progress": {"fn/sub": {
        "started": "2026-11-15T18:53:43.155912", "purpose": "create",
    }}}}});
    assert_eq!(storage.fetch("fn/sub", &object(&body)).unwrap(), Some(record()));
    let mut patch = Patch::default();
    storage.purge("fn/sub", &object(&body), &mut patch).unwrap();
    assert_eq!(merge(&patch), json!({"status": {"kopf": {"progress": {"fn/sub": null}}}}));
}

#[test]
fn status_progress_has_explicit_nulls() {
    let storage = StatusProgress::named("myop");
    let mut patch = Patch::default();
    storage.store("fn", &record(), &object(&json!({})), &mut patch).unwrap();
    let stored = &patch.merge["status"]["myop"]["progress"]["fn"];
    assert_eq!(stored.as_object().unwrap().len(), 9);
    assert_eq!(stored["delayed"], Value::Null);
    storage.touch(&object(&json!({})), &mut patch, Some("now")).unwrap();
    assert_eq!(patch.merge["status"]["myop"]["dummy"], json!("now"));
}

#[test]
fn status_progress_keeps_handled_states_beside_records_that_kopf_reads() {
    let storage = StatusProgress::named("myop");
    let finished =
        ProgressRecord { success: true, handled: Some(json!([1, {"a": 2}])), ..record() };
    let mut patch = Patch::default();
    storage.store("fn", &finished, &object(&json!({})), &mut patch).unwrap();
    let body = patch.applied_to(&json!({})).unwrap();
    let stored = &body["status"]["myop"]["progress"];
    assert_eq!(stored["fn"].get("handled"), None, "{stored}");
    assert_eq!(stored["fn"]["subrefs"], json!(["fn/handled-state"]));
    assert_eq!(storage.fetch("fn", &object(&body)).unwrap(), Some(finished));

    let mut patch = Patch::default();
    storage.store("fn", &record(), &object(&body), &mut patch).unwrap();
    let rerun = patch.applied_to(&body).unwrap();
    assert_eq!(rerun["status"]["myop"]["progress"].as_object().unwrap().len(), 1, "{rerun}");
    assert_eq!(storage.fetch("fn", &object(&rerun)).unwrap(), Some(record()));

    let mut patch = Patch::default();
    storage.purge("fn", &object(&body), &mut patch).unwrap();
    let purged = patch.applied_to(&body).unwrap();
    assert_eq!(purged["status"]["myop"]["progress"], json!({}));
}

/// Kopf removes the records that the record of the outermost handler names, and no others.
#[test]
fn status_progress_names_the_states_of_sub_handlers_in_the_outermost_record() {
    let storage = StatusProgress::named("myop");
    let done = || ProgressRecord { success: true, handled: Some(json!([1])), ..record() };
    let naming = |mut record: ProgressRecord, subrefs: &[&str]| {
        record.subrefs = subrefs.iter().map(|&id| id.to_owned()).collect();
        record
    };
    let named = json!(["top/a", "top/a/handled-state", "top/a/x", "top/a/x/handled-state"]);
    let records = [
        ("top", naming(record(), &["top/a", "top/a/x"])),
        ("top/a", naming(done(), &["top/a/x"])),
        ("top/a/x", done()),
    ];
    let reversed = records.iter().rev().cloned().collect::<Vec<_>>();
    for records in [records.to_vec(), reversed] {
        // In one patch, and in one patch for each record.
        let (mut together, mut body) = (Patch::default(), json!({}));
        for (id, record) in &records {
            storage.store(id, record, &object(&json!({})), &mut together).unwrap();
            let mut alone = Patch::default();
            storage.store(id, record, &object(&body), &mut alone).unwrap();
            body = alone.applied_to(&body).unwrap();
        }
        for body in [body, together.applied_to(&json!({})).unwrap()] {
            assert_eq!(body["status"]["myop"]["progress"]["top"]["subrefs"], named, "{body}");
            for (id, record) in &records {
                assert_eq!(storage.fetch(id, &object(&body)).unwrap().as_ref(), Some(record));
            }
        }
    }
}

#[test]
fn status_progress_moves_states_out_of_records_of_earlier_releases() {
    let storage = StatusProgress::named("myop");
    let finished = ProgressRecord { success: true, handled: Some(json!([1])), ..record() };
    let stored = finished.to_value(Absent::Omitted);
    let body = json!({"status": {"myop": {"progress": {"fn": stored}}}});
    let fetched = storage.fetch("fn", &object(&body)).unwrap().unwrap();
    assert_eq!(fetched, finished);
    let mut patch = Patch::default();
    storage.store("fn", &fetched, &object(&body), &mut patch).unwrap();
    let moved = patch.applied_to(&body).unwrap();
    assert_eq!(moved["status"]["myop"]["progress"]["fn"].get("handled"), None, "{moved}");
    assert_eq!(storage.fetch("fn", &object(&moved)).unwrap(), Some(finished));
}

#[test]
fn only_the_first_of_many_storages_gets_handled_states() {
    let many = MultiProgress(vec![
        Box::new(StatusProgress::named("first")),
        Box::new(StatusProgress::named("second")),
    ]);
    let finished = ProgressRecord { success: true, handled: Some(json!([1])), ..record() };
    let mut patch = Patch::default();
    many.store("fn", &finished, &object(&json!({})), &mut patch).unwrap();
    let body = patch.applied_to(&json!({})).unwrap();
    assert_eq!(many.fetch("fn", &object(&body)).unwrap(), Some(finished.clone()));
    let second = StatusProgress::named("second").fetch("fn", &object(&body)).unwrap();
    assert_eq!(second, Some(ProgressRecord { handled: None, ..finished }));
    assert_eq!(body["status"]["second"]["progress"].as_object().unwrap().len(), 1, "{body}");
}

#[test]
fn touching_writes_only_differences() {
    let storage = smart();
    let mut patch = Patch::default();
    storage.touch(&object(&json!({})), &mut patch, None).unwrap();
    assert!(patch.is_empty());
    storage.touch(&object(&json!({})), &mut patch, Some("t")).unwrap();
    let body = merge(&patch);
    assert_eq!(body, json!({"metadata": {"annotations": {"kopf.zalando.org/touch-dummy": "t"}}}));
    let mut patch = Patch::default();
    storage.touch(&object(&body), &mut patch, Some("t")).unwrap();
    assert!(patch.is_empty());
}

#[test]
fn essences_are_cleared_of_progress() {
    let storage = smart();
    let mut essence = essence(json!({
        "metadata": {"annotations": {"kopf.zalando.org/fn": "{}"}},
        "status": {"kopf": {"progress": {"fn": {}}, "dummy": "t"}},
        "spec": {},
    }));
    storage.clear(&mut essence).unwrap();
    assert_eq!(essence, json!({"status": {"kopf": {"dummy": "t"}}, "spec": {}}));
}

/// Text that does not compress.
fn noise(size: usize) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap())
    };
    std::iter::repeat_with(&mut next).filter(|c| !matches!(c, '"' | '\\')).take(size).collect()
}

fn stored_size(patch: &Patch) -> usize {
    let annotations = patch.merge["metadata"]["annotations"].as_object().unwrap();
    annotations.iter().map(|(key, value)| key.len() + value.as_str().unwrap().len()).sum()
}

fn store_compact(essence: &Essence) -> (StoredForm, Value) {
    let storage = CompactDiffBase::new(default_diffbase());
    let mut patch = Patch::default();
    let form = storage.store(essence, &object(&json!({})), &mut patch).unwrap();
    assert!(stored_size(&patch) < ANNOTATIONS_SIZE_MAX, "{form:?}");
    (form, merge(&patch))
}

#[test]
fn small_states_are_stored_as_kopf_does() {
    let (form, body) = store_compact(&essence(json!({"spec": {"a": 1}})));
    assert_eq!(form, StoredForm::Plain);
    assert_eq!(body["metadata"]["annotations"][LAST_HANDLED], json!("{\"spec\":{\"a\":1}}\n"));
}

#[test]
fn large_states_are_compressed_without_loss() {
    let essence = essence(json!({"data": {"k": "a".repeat(1_000_000)}}));
    let (form, body) = store_compact(&essence);
    assert!(matches!(form, StoredForm::Compressed { .. }), "{form:?}");
    assert_eq!(
        default_diffbase().fetch(&object(&body), &Essence::from(json!({}))).unwrap(),
        Some(essence)
    );
}

#[test]
fn incompressible_states_still_show_the_changed_field() {
    let essence = json!({"data": {"big": noise(1_000_000), "small": "1"}, "type": "Opaque"});
    let essence = Essence::from(essence);
    let (form, body) = store_compact(&essence);
    assert!(matches!(form, StoredForm::Digested { digests: 1, .. }), "{form:?}");
    let storage = default_diffbase();
    let old = storage.fetch(&object(&body), &essence).unwrap();
    assert_eq!(old, Some(essence.clone()), "unchanged values are known again");

    let mut changed = essence.clone();
    changed.edit(|tree| tree["data"]["big"] = json!("other"));
    let old = storage.fetch(&object(&body), &changed).unwrap();
    let diff = Diff::between(old.as_deref(), Some(&changed));
    assert_eq!(diff.iter().map(|item| item.field.to_string()).collect::<Vec<_>>(), ["data.big"]);
}

#[test]
fn the_copy_never_makes_the_object_too_large_for_the_database() {
    // Half of it compresses well, so the compressed form alone would fit into the annotations.
    let essence = json!({"data": {"a": noise(100_000), "b": "x".repeat(1_330_000)}});
    let (form, _) = store_compact(&essence.into());
    let StoredForm::Digested { plain_size, stored_size, .. } = form else { panic!("{form:?}") };
    assert!(plain_size + stored_size < 1_500_000, "{form:?}");
}

#[test]
fn many_small_values_end_as_digests_of_the_top_level() {
    let text = noise(1_000_000);
    let data: serde_json::Map<_, _> = (0..12_000)
        .map(|index| (format!("key-{index}"), json!(&text[index * 50..index * 50 + 50])))
        .collect();
    let essence = Essence::from(json!({"data": data}));
    let (form, body) = store_compact(&essence);
    assert!(matches!(form, StoredForm::Digested { .. }), "{form:?}");
    assert_eq!(default_diffbase().fetch(&object(&body), &essence).unwrap(), Some(essence));
}

#[test]
fn unknown_forms_of_newer_releases_are_errors() {
    let text = json!({"kopf.dev/compact": {"form": "future"}}).to_string();
    let body = json!({"metadata": {"annotations": {LAST_HANDLED: text}}});
    assert!(default_diffbase().fetch(&object(&body), &essence(json!({}))).is_err());
}
