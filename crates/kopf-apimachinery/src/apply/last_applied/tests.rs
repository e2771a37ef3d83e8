//! From client-side to server-side apply, as recorded with kubectl 1.33 and a real server.

use serde_json::{Value, json};

use super::{ANNOTATION, renew};
use crate::StatusError;
use crate::apply::{ManagedFields, Manager, Owned, apply, track_update};

const TIME: &str = "2026-01-01T00:00:00Z";

fn manager(name: &str) -> Manager<'_> {
    Manager {
        name,
        api_version: "v1",
        kind: "ConfigMap",
        subresource: "",
        has_status: false,
        has_versions: false,
        time: TIME,
    }
}

fn config(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
}

/// A config map and its managers.
struct World {
    object: Value,
    managed: ManagedFields,
}

impl World {
    /// The object that `kubectl apply` creates from a configuration.
    fn of_client_side_apply(data: Value) -> Self {
        let mut object = config(data);
        let note = format!("{object}\n");
        object["metadata"]["annotations"] = json!({ ANNOTATION: note });
        let of = crate::schema::builtin("", "v1", "ConfigMap");
        let by = manager("kubectl-client-side-apply");
        let managed = track_update(&by, of.as_deref(), None, &mut object);
        Self { object, managed }
    }

    fn update(&mut self, name: &str, key: &str, value: &str) {
        let mut object = self.object.clone();
        object["data"][key] = value.into();
        let of = crate::schema::builtin("", "v1", "ConfigMap");
        let live = Owned { object: &self.object, managed: &self.managed };
        self.managed = track_update(&manager(name), of.as_deref(), Some(live), &mut object);
        self.object = object;
    }

    fn apply(&mut self, name: &str, data: Value) -> Result<(), StatusError> {
        let of = crate::schema::builtin("", "v1", "ConfigMap");
        let live = Owned { object: &self.object, managed: &self.managed };
        let applied = config(data);
        let made = apply(&manager(name), false, of.as_deref(), Some(live), &applied)?;
        (self.object, self.managed) = made;
        Ok(())
    }

    fn note(&self) -> &str {
        self.object["metadata"]["annotations"][ANNOTATION].as_str().unwrap_or_default()
    }
}

#[test]
fn kubectl_takes_over_what_it_applied_on_the_client_side() {
    let mut world = World::of_client_side_apply(json!({"x": "1", "y": "<a&b>"}));
    world.apply("kubectl", json!({"x": "2", "y": "<a&b>"})).unwrap();
    assert_eq!(world.object["data"], json!({"x": "2", "y": "<a&b>"}));
    assert_eq!(
        world.note(),
        concat!(
            r#"{"apiVersion":"v1","data":{"x":"2","y":"\u003ca\u0026b\u003e"},"#,
            r#""kind":"ConfigMap","metadata":{"name":"c"}}"#,
            "\n"
        )
    );
    let managed: Value = serde_json::from_slice(world.managed.text()).unwrap();
    assert_eq!(managed[0]["manager"], "kubectl");
    assert_eq!(managed[0]["fieldsV1"], json!({"f:data": {"f:x": {}, "f:y": {}}}));
    assert_eq!(managed[1]["manager"], "kubectl-client-side-apply");
    assert_eq!(
        managed[1]["fieldsV1"],
        json!({"f:data": {".": {}, "f:y": {}},
               "f:metadata": {"f:annotations": {".": {}, format!("f:{ANNOTATION}"): {}}}})
    );
}

#[test]
fn other_managers_conflict_with_the_client_side() {
    let mut world = World::of_client_side_apply(json!({"x": "1"}));
    let error = world.apply("other", json!({"x": "2"})).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using v1: \
         .data.x"
    );
}

#[test]
fn what_was_changed_since_the_note_still_conflicts() {
    let mut world = World::of_client_side_apply(json!({"x": "1", "y": "1"}));
    world.update("hand", "x", "9");
    let error = world.apply("kubectl", json!({"x": "3", "y": "3"})).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"hand\" using v1: .data.x"
    );
}

#[test]
fn a_note_that_cannot_be_read_gives_no_right() {
    for note in ["", "{", "{}", r#"{"apiVersion":"v2","kind":"ConfigMap","data":{"x":"1"}}"#] {
        let mut world = World::of_client_side_apply(json!({"x": "1"}));
        world.object["metadata"]["annotations"][ANNOTATION] = note.into();
        assert!(world.apply("kubectl", json!({"x": "2"})).is_err(), "{note}");
    }
}

#[test]
fn notes_are_neither_begun_nor_made_too_large() {
    let object = || json!({"metadata": {"annotations": {ANNOTATION: "old", "a": "b"}}});
    let large = config(json!({"x": "y".repeat(300 << 10)}));
    let mut renewed = object();
    renew(&manager("kubectl"), &large, &mut renewed);
    assert_eq!(renewed, json!({"metadata": {"annotations": {"a": "b"}}}));
    let mut unmarked = json!({"metadata": {"annotations": {"a": "b"}}});
    renew(&manager("kubectl"), &config(json!({})), &mut unmarked);
    assert_eq!(unmarked, json!({"metadata": {"annotations": {"a": "b"}}}));
    let mut foreign = object();
    renew(&manager("other"), &config(json!({})), &mut foreign);
    assert_eq!(foreign, object());
}
