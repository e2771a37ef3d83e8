//! Managed fields: order of entries, malformed ones, the limit on updaters.

use serde_json::{Value, json};

use super::{FieldSet, ManagedFields, ManagerId, Managers, Ownership};

/// Managed fields as the store keeps them.
fn stored(entries: &Value) -> ManagedFields {
    ManagedFields::take_from(&mut json!({"metadata": {"managedFields": entries}}))
}

fn updater(name: &str, time: &str, field: &str) -> (ManagerId, Ownership<'static>) {
    let ownership = Ownership {
        fields: FieldSet::of_fields(&[&["data", field]]).into(),
        api_version: "v1".into(),
        time: Some(time.into()),
    };
    (ManagerId::updater(name, "v1", ""), ownership)
}

#[test]
fn entries_are_sorted_by_operation_then_time_then_name() {
    let entry = |manager: &str, operation: &str, time: Option<&str>| {
        let mut entry = json!({
            "manager": manager, "operation": operation, "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}},
        });
        if let Some(time) = time {
            entry["time"] = json!(time);
        }
        entry
    };
    let sorted = json!([
        entry("m2", "Apply", None),
        entry("m1", "Apply", Some("2026-01-01T00:00:00Z")),
        entry("a", "Update", Some("2026-01-01T00:00:00Z")),
        entry("b", "Update", Some("2026-01-01T00:00:00Z")),
    ]);
    let mut shuffled = sorted.as_array().unwrap().clone();
    shuffled.reverse();
    let managers = Managers::decode(Some(&Value::Array(shuffled))).unwrap();
    let mut written = json!({"metadata": {}});
    managers.write().put_into(&mut written);
    assert_eq!(written["metadata"]["managedFields"], sorted);
}

#[test]
fn stored_fields_behave_as_decoded_ones() {
    let entries = json!([{
        "manager": "m", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {".": {}, "f:a": {}, "f:b": {}}},
    }]);
    for lost in [&["data", "a"][..], &["data", "c"], &["data"], &["other"], &["data", "a", "x"]] {
        let lost = FieldSet::of_fields(&[lost]);
        let mut decoded = Managers::decode(Some(&entries)).unwrap();
        let text = stored(&entries);
        let mut stored = Managers::decode_stored(&text).unwrap();
        assert_eq!((stored.write(), decoded.write()), (text.clone(), text.clone()));
        for managers in [&mut decoded, &mut stored] {
            managers.entries.values_mut().for_each(|entry| entry.fields.subtract(&lost));
            managers.drop_empty();
        }
        assert_eq!(stored.write(), decoded.write(), "{:?}", lost.paths());
    }
}

#[test]
fn malformed_entries_are_refused() {
    for (entry, problem) in [
        (
            json!({"manager": "a", "operation": "Frob", "fieldsType": "FieldsV1"}),
            "operation must be `Apply` or `Update`",
        ),
        (
            json!({"manager": "a", "apiVersion": "v1", "fieldsType": "FieldsV1"}),
            "operation must be `Apply` or `Update`",
        ),
        (
            json!({"manager": "a", "operation": "Update", "fieldsType": "FieldsV1",
                   "fieldsV1": {"f:a": {}}}),
            "apiVersion must not be empty",
        ),
        (
            json!({"operation": "Apply", "apiVersion": "v1"}),
            "missing fieldsType in managed fields entry 0",
        ),
        (
            json!({"operation": "Apply", "apiVersion": "v1", "fieldsType": "V2"}),
            "invalid fieldsType \"V2\" in managed fields entry 0",
        ),
        (
            json!({"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
                   "fieldsV1": {"x": {}}}),
            "error decoding the fields of managed fields entry 0",
        ),
        (
            json!({"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
                   "fieldsV1": 5}),
            "error decoding the fields of managed fields entry 0",
        ),
    ] {
        let refused = Managers::decode(Some(&json!([entry]))).unwrap_err();
        assert_eq!(refused.to_string(), problem, "{entry}");
    }
}

#[test]
fn entries_without_fields_are_written_as_json() {
    let entries = json!([{
        "manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
    }]);
    let text = stored(&entries);
    let written = Managers::decode_stored(&text).unwrap().write();
    let read: Value = serde_json::from_slice(written.text()).unwrap();
    assert_eq!(read[0]["fieldsV1"], json!({}));
}

#[test]
fn the_oldest_updaters_are_merged() {
    let mut managers = Managers::default();
    for index in 0..12 {
        let time = format!("2026-01-01T00:00:{index:02}Z");
        let (id, ownership) = updater(&format!("m{index:02}"), &time, &format!("k{index}"));
        managers.entries.insert(id, ownership);
    }
    managers.merge_old_updaters();
    assert_eq!(managers.entries.len(), 10);
    let old = &managers.entries[&ManagerId::updater("ancient-changes", "v1", "")];
    assert_eq!(old.fields.set().paths(), [".data.k0", ".data.k1", ".data.k2"]);
    assert_eq!(old.time.as_deref(), Some("2026-01-01T00:00:02Z"));
    let (id, ownership) = updater("late", "2026-01-01T00:01:00Z", "late");
    managers.entries.insert(id, ownership);
    managers.merge_old_updaters();
    assert_eq!(managers.entries.len(), 10);
    assert!(managers.entries.contains_key(&ManagerId::updater("ancient-changes", "v1", "")));
}
