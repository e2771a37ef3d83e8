use kopf_core::Settings;
use serde_json::json;

use super::*;

fn layout() -> StorageLayout {
    StorageLayout {
        finalizer: "kopf.zalando.org/KopfFinalizerMarker".into(),
        progress_prefix: Some("kopf.zalando.org".into()),
        progress_status: Some("kopf".into()),
        last_handled: Some(("kopf.zalando.org".into(), "last-handled-configuration".into())),
        changing: BTreeSet::new(),
    }
}

fn object(annotations: Value, spec: Value) -> Object {
    Object::from_value(json!({
        "apiVersion": "x.dev/v1", "kind": "Widget",
        "metadata": {"name": "a", "namespace": "default", "uid": "1", "annotations": annotations},
        "spec": spec,
    }))
}

#[test]
fn records_are_reported_from_other_annotations() {
    let record = json!({"retries": 2, "success": false, "failure": false, "message": "no"});
    let annotations = json!({
        "kopf.zalando.org/create_fn": record.to_string(),
        "kopf.zalando.org/other": "{}",
        "example.com/create_fn": record.to_string(),
    });
    let stored = layout().read(&object(annotations, json!({})));
    let ids: Vec<&str> = stored.records.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["create_fn"]);
    assert_eq!(stored.records[0].1.retries, 2);
    assert_eq!(stored.handled, Handled::Never);
}

#[test]
fn a_change_since_the_last_handled_state_is_seen() {
    let last = json!({"spec": {"size": 1}}).to_string();
    let annotations = json!({"kopf.zalando.org/last-handled-configuration": last});
    let same = layout().read(&object(annotations.clone(), json!({"size": 1})));
    assert_eq!(same.handled, Handled::Same);
    let changed = object(annotations, json!({"size": 2}));
    assert_eq!(layout().read(&changed).handled, Handled::Changed);
    let differences = layout().differences(&changed).flatten().expect("a last-handled state");
    assert_eq!(differences[0].field, "spec.size");
    assert_eq!((&differences[0].old, &differences[0].new), (&Some(json!(1)), &Some(json!(2))));
}

#[test]
fn the_places_of_default_settings_are_found() {
    let settings = Settings::default();
    let report = OperatorReport {
        finalizer: settings.persistence.finalizer,
        progress_prefix: Some("kopf.zalando.org".into()),
        progress_status: Some("kopf".into()),
        last_handled_annotation: Some("kopf.zalando.org/last-handled-configuration".into()),
        ..OperatorReport::default()
    };
    assert_eq!(StorageLayout::of(&report), layout());
}

#[test]
fn kinds_without_change_handlers_are_distinguished() {
    let handler = |kind: &str, resources: &str| HandlerReport {
        kind: kind.into(),
        resources: Some(resources.into()),
        ..HandlerReport::default()
    };
    let handlers = vec![handler("create", "x.dev/v1/widgets"), handler("event", "x.dev/v1/logs")];
    let layout = StorageLayout::of(&OperatorReport { handlers, ..OperatorReport::default() });
    let ours = ["widgets", "logs"];
    assert!(layout.may_be_handled("widgets", &ours));
    assert!(!layout.may_be_handled("logs", &ours));
    let handlers = vec![handler("create", "a-category")];
    let layout = StorageLayout::of(&OperatorReport { handlers, ..OperatorReport::default() });
    assert!(layout.may_be_handled("logs", &ours), "it may be of that category");
}
