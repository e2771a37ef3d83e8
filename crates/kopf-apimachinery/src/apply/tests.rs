//! Ownership and apply as sequences of writes by several managers, with their invariants.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ManagedFields, Manager, Owned};
use crate::StatusError;
use crate::schema::Schema;

fn custom_schema() -> Arc<Schema> {
    crate::schema::custom(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"},
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
            "list": {"type": "array", "x-kubernetes-list-type": "map",
                     "x-kubernetes-list-map-keys": ["name"],
                     "items": {"type": "object", "properties": {
                         "name": {"type": "string"}, "x": {"type": "integer"},
                         "y": {"type": "integer"}}}},
        }},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}))
    .expect("the schema is valid")
}

/// Splits a tree into the object and its managed fields.
fn apart(whole: &Value) -> (Value, ManagedFields) {
    let mut object = whole.clone();
    let managed = ManagedFields::take_from(&mut object);
    (object, managed)
}

fn track_update(
    manager: &Manager<'_>,
    schema: Option<&Schema>,
    old: Option<&Value>,
    object: &mut Value,
) {
    let old = old.map(apart);
    let old = old.as_ref().map(|(object, managed)| Owned { object, managed });
    super::track_update(manager, schema, old, object).put_into(object);
}

fn apply(
    manager: &Manager<'_>,
    force: bool,
    schema: Option<&Schema>,
    live: Option<&Value>,
    applied: &Value,
) -> Result<Value, StatusError> {
    let live = live.map(apart);
    let live = live.as_ref().map(|(object, managed)| Owned { object, managed });
    let (mut object, managed) = super::apply(manager, force, schema, live, applied)?;
    managed.put_into(&mut object);
    Ok(object)
}

fn track_scale(manager: &Manager<'_>, replicas_path: &[&str], object: &mut Value) {
    let (bare, managed) = apart(object);
    *object = bare;
    super::track_scale(manager, replicas_path, object, &managed).put_into(object);
}

/// One object and the managers that write to it.
struct World {
    api_version: &'static str,
    kind: &'static str,
    schema: Option<Arc<Schema>>,
    live: Option<Value>,
    seconds: u32,
}

impl World {
    fn custom() -> Self {
        let schema = Some(custom_schema());
        Self { api_version: "t.io/v1", kind: "Foo", schema, live: None, seconds: 0 }
    }

    fn builtin(group: &str, api_version: &'static str, kind: &'static str) -> Self {
        let version = api_version.rsplit('/').next().unwrap();
        let schema = crate::schema::builtin(group, version, kind);
        assert!(schema.is_some(), "{api_version} {kind} has a schema");
        Self { api_version, kind, schema, live: None, seconds: 0 }
    }

    fn object(&self, mut content: Value) -> Value {
        content["apiVersion"] = json!(self.api_version);
        content["kind"] = json!(self.kind);
        if content.get("metadata").is_none() {
            content["metadata"] = json!({});
        }
        content["metadata"]["name"] = json!("x");
        content
    }

    fn with<T>(
        &mut self,
        name: &str,
        subresource: &str,
        run: impl FnOnce(&Self, &Manager<'_>) -> T,
    ) -> T {
        self.seconds += 1;
        let time = format!("2026-01-01T00:00:{:02}Z", self.seconds % 60);
        let manager = Manager {
            name,
            api_version: self.api_version,
            kind: self.kind,
            subresource,
            has_status: true,
            has_versions: false,
            time: &time,
        };
        run(self, &manager)
    }

    fn apply(&mut self, name: &str, content: Value, force: bool) -> Result<(), StatusError> {
        let config = self.object(content);
        let result = self.with(name, "", |world, manager| {
            apply(manager, force, world.schema.as_deref(), world.live.as_ref(), &config)
        })?;
        self.live = Some(result);
        Ok(())
    }

    fn update_at(&mut self, name: &str, subresource: &str, content: Value) {
        let mut object = self.object(content);
        if let Some(live) = &self.live {
            object["metadata"]["managedFields"] = live["metadata"]["managedFields"].clone();
        }
        self.with(name, subresource, |world, manager| {
            track_update(manager, world.schema.as_deref(), world.live.as_ref(), &mut object);
        });
        self.live = Some(object);
    }

    fn update(&mut self, name: &str, content: Value) {
        self.update_at(name, "", content);
    }

    fn spec(&self) -> Value {
        self.live.as_ref().unwrap()["spec"].clone()
    }

    /// `manager operation subresource` and fields of every entry.
    fn owners(&self) -> Value {
        let entries = self.live.as_ref().unwrap()["metadata"]["managedFields"].as_array().cloned();
        let entries = entries.unwrap_or_default().into_iter().map(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            let key = format!("{} {} {}", text("manager"), text("operation"), text("subresource"));
            (key.trim().to_owned(), entry["fieldsV1"].clone())
        });
        Value::Object(entries.collect())
    }
}

#[test]
fn applying_creates_and_owns() {
    let mut world = World::custom();
    world.apply("m1", json!({"spec": {"a": 1, "b": 1}}), false).unwrap();
    assert_eq!(world.spec(), json!({"a": 1, "b": 1}));
    assert_eq!(world.owners(), json!({"m1 Apply": {"f:spec": {"f:a": {}, "f:b": {}}}}));
}

#[test]
fn applying_the_same_again_changes_nothing() {
    let mut world = World::custom();
    world.apply("m1", json!({"spec": {"a": 1, "set": ["x"]}}), false).unwrap();
    let before = world.live.clone();
    world.apply("m1", json!({"spec": {"a": 1, "set": ["x"]}}), false).unwrap();
    assert_eq!(world.live, before);
}

#[test]
fn a_conflict_names_manager_and_field() {
    let mut world = World::custom();
    world.apply("m1", json!({"spec": {"a": 1, "b": 1}}), false).unwrap();
    let error = world.apply("m2", json!({"spec": {"a": 2}}), false).unwrap_err();
    assert_eq!(error.message, "Apply failed with 1 conflict: conflict with \"m1\": .spec.a");
    assert_eq!(
        error.to_value()["details"],
        json!({"causes": [{"reason": "FieldManagerConflict", "message": "conflict with \"m1\"",
                           "field": ".spec.a"}]})
    );
    let error = world.apply("m2", json!({"spec": {"a": 2, "b": 2}}), false).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 2 conflicts: conflicts with \"m1\":\n- .spec.a\n- .spec.b"
    );
}

#[test]
fn equal_values_are_owned_together_and_force_takes_over() {
    let mut world = World::custom();
    world.apply("m1", json!({"spec": {"a": 1, "b": 1}}), false).unwrap();
    world.apply("m2", json!({"spec": {"a": 1}}), false).unwrap();
    let entries = &world.live.as_ref().unwrap()["metadata"]["managedFields"];
    assert_eq!(entries[0]["manager"], "m2", "an entry without time is the oldest");
    assert_eq!(entries[0].get("time"), None, "nothing changed, so there is no time");
    world.apply("m2", json!({"spec": {"a": 3}}), true).unwrap();
    assert_eq!(
        world.owners(),
        json!({"m1 Apply": {"f:spec": {"f:b": {}}}, "m2 Apply": {"f:spec": {"f:a": {}}}})
    );
    world.apply("m1", json!({"spec": {"a": 1}}), true).unwrap();
    assert_eq!(world.spec(), json!({"a": 1}));
    assert_eq!(world.owners(), json!({"m1 Apply": {"f:spec": {"f:a": {}}}}));
}

#[test]
fn what_is_no_longer_applied_is_removed_unless_others_own_it() {
    let mut world = World::custom();
    world.apply("m1", json!({"spec": {"a": 1, "b": 1, "set": ["x", "y"]}}), false).unwrap();
    world.apply("m2", json!({"spec": {"b": 1, "set": ["y"]}}), false).unwrap();
    world.apply("m1", json!({"spec": {"c": 1}}), false).unwrap();
    assert_eq!(world.spec(), json!({"b": 1, "set": ["y"], "c": 1}));
}

#[test]
fn an_object_that_is_no_longer_applied_goes_with_its_last_field() {
    let mut world = World::custom();
    world.apply("m1", json!({"spec": {"a": 1, "map": {"k": 1}}}), false).unwrap();
    world.apply("m1", json!({"spec": {"a": 1}}), false).unwrap();
    assert_eq!(world.spec(), json!({"a": 1}));
    world.apply("m1", json!({}), false).unwrap();
    assert_eq!(world.live.as_ref().unwrap().get("spec"), None);
    assert_eq!(world.owners(), json!({}));
}

#[test]
fn list_items_are_merged_and_owned_one_by_one() {
    let mut world = World::custom();
    world.apply("m1", json!({"spec": {"list": [{"name": "p", "x": 1}]}}), false).unwrap();
    world
        .apply("m2", json!({"spec": {"list": [{"name": "p", "y": 2}, {"name": "q"}]}}), false)
        .unwrap();
    assert_eq!(world.spec(), json!({"list": [{"name": "p", "x": 1, "y": 2}, {"name": "q"}]}));
    world.apply("m1", json!({"spec": {"list": []}}), false).unwrap();
    assert_eq!(world.spec(), json!({"list": [{"name": "p", "y": 2}, {"name": "q"}]}));
}

#[test]
fn updates_take_what_they_change() {
    let mut world = World::custom();
    world.apply("m1", json!({"spec": {"a": 1, "b": 1}}), false).unwrap();
    world.update("upd", json!({"spec": {"a": 2, "b": 1, "c": 1}}));
    assert_eq!(
        world.owners(),
        json!({"m1 Apply": {"f:spec": {"f:b": {}}},
               "upd Update": {"f:spec": {"f:a": {}, "f:c": {}}}})
    );
    let error = world.apply("m1", json!({"spec": {"a": 1, "b": 1}}), false).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"upd\" using t.io/v1: .spec.a"
    );
}

#[test]
fn an_update_that_changes_nothing_keeps_times() {
    let mut world = World::custom();
    world.update("upd", json!({"spec": {"a": 1}}));
    let before = world.live.clone();
    world.update("upd", json!({"spec": {"a": 1}}));
    world.update("other", json!({"spec": {"a": 1}}));
    assert_eq!(world.live, before);
}

#[test]
fn creation_owns_maps_themselves_in_custom_resources() {
    let mut world = World::custom();
    world.update(
        "upd",
        json!({"spec": {"a": 1, "map": {"k": 1}},
                               "metadata": {"labels": {"l": "1"}}}),
    );
    assert_eq!(
        world.owners(),
        json!({"upd Update": {
            "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
            "f:spec": {".": {}, "f:a": {}, "f:map": {".": {}, "f:k": {}}},
        }})
    );
}

#[test]
fn status_belongs_to_the_status_endpoint() {
    let mut world = World::custom();
    world.update("upd", json!({"spec": {"a": 1}, "status": {"x": 1}}));
    assert_eq!(world.owners(), json!({"upd Update": {"f:spec": {".": {}, "f:a": {}}}}));
    world.update_at("ctl", "status", json!({"spec": {"a": 1}, "status": {"x": 2}}));
    assert_eq!(
        world.owners(),
        json!({"upd Update": {"f:spec": {".": {}, "f:a": {}}},
               "ctl Update status": {"f:status": {"f:x": {}}}})
    );
}

#[test]
fn clearing_managed_fields_stops_tracking_until_the_next_apply() {
    let mut world = World::custom();
    world.update("upd", json!({"spec": {"a": 1}}));
    let mut cleared = world.live.clone().unwrap();
    cleared["metadata"]["managedFields"] = json!([]);
    let mut object = cleared.clone();
    world.with("upd", "", |world, manager| {
        track_update(manager, world.schema.as_deref(), world.live.as_ref(), &mut object);
    });
    assert_eq!(object["metadata"].get("managedFields"), None);
    world.live = Some(object);
    world.update("upd", json!({"spec": {"a": 2}}));
    assert_eq!(world.owners(), json!({}));
    world.apply("m1", json!({"spec": {"b": 1}}), false).unwrap();
    assert_eq!(
        world.owners(),
        json!({"m1 Apply": {"f:spec": {"f:b": {}}},
               "before-first-apply Update": {"f:spec": {".": {}, "f:a": {}}}})
    );
}

#[test]
fn bodies_that_cannot_be_applied_are_refused() {
    let mut world = World::custom();
    let error = world.apply("m", json!({"spec": {"zzz": 1}}), false).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            500,
            "failed to create typed patch object (/x; t.io/v1, Kind=Foo): .spec.zzz: field not \
               declared in schema"
        )
    );
    let error = world
        .apply("m", json!({"metadata": {"managedFields": [{"manager": "x"}]}}), false)
        .unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (400, "metadata.managedFields must be nil"));
    let error = world
        .with("m", "", |world, manager| {
            apply(manager, false, world.schema.as_deref(), None, &json!({"metadata": {}}))
        })
        .unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (400, "invalid object type: /, Kind="));
}

#[test]
fn the_recorded_deployment_is_owned_field_by_field() {
    let mut world = World::builtin("apps", "apps/v1", "Deployment");
    let deployment = |env: &str, value: &str| {
        json!({
            "metadata": {"labels": {"app": "d1"}},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "d1"}}, "template": {
                "metadata": {"labels": {"app": "d1"}},
                "spec": {"containers": [{
                    "name": "c", "image": "nginx:1", "ports": [{"containerPort": 80}],
                    "env": [{"name": env, "value": value}],
                }]}}},
        })
    };
    world.apply("k", deployment("A", "1"), false).unwrap();
    world.apply("k", deployment("B", "2"), false).unwrap();
    let containers = &world.spec()["template"]["spec"]["containers"];
    assert_eq!(containers[0]["env"], json!([{"name": "B", "value": "2"}]));
    assert_eq!(
        world.owners(),
        json!({"k Apply": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
                    ".": {}, "f:image": {}, "f:name": {},
                    "f:env": {"k:{\"name\":\"B\"}": {".": {}, "f:name": {}, "f:value": {}}},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {
                        ".": {}, "f:containerPort": {}}},
                }}}}},
        }})
    );
    let mut scaled = world.live.clone().unwrap();
    scaled["spec"]["replicas"] = json!(2);
    world.with("hpa", "scale", |_, manager| {
        track_scale(manager, &["spec", "replicas"], &mut scaled);
    });
    world.live = Some(scaled);
    let error = world.apply("k", deployment("B", "2"), false).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"hpa\" with subresource \"scale\" using \
         apps/v1: .spec.replicas"
    );
}

#[test]
fn creation_of_built_in_kinds_owns_only_what_go_would_omit() {
    let mut world = World::builtin("", "v1", "ConfigMap");
    world.update("r", json!({"data": {"k": "v"}, "metadata": {"generateName": "g"}}));
    assert_eq!(
        world.owners(),
        json!({"r Update": {"f:data": {".": {}, "f:k": {}}, "f:metadata": {"f:generateName": {}}}})
    );
    let mut world = World::builtin("", "v1", "Pod");
    world.update(
        "r",
        json!({"spec": {"containers": [{"name": "c", "image": "x",
                                                      "resources": {}}]}}),
    );
    assert_eq!(
        world.owners(),
        json!({"r Update": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
            ".": {}, "f:image": {}, "f:name": {}, "f:resources": {}}}}}})
    );
}

fn any_spec() -> impl Strategy<Value = Value> {
    let number = prop::option::of(0i64..3);
    let names = prop::collection::btree_set("[p-r]", 0..3);
    let map = prop::option::of(prop::collection::btree_map("[k-m]", 0i64..3, 0..3));
    let list = prop::collection::btree_map(
        "[p-r]",
        (prop::option::of(0i64..3), prop::option::of(0i64..3)),
        0..3,
    );
    (number.clone(), number, names, map, list).prop_map(|(a, b, set, map, list)| {
        let mut spec = json!({});
        if let Some(a) = a {
            spec["a"] = json!(a);
        }
        if let Some(b) = b {
            spec["b"] = json!(b);
        }
        if !set.is_empty() {
            spec["set"] = json!(set);
        }
        if let Some(map) = map {
            spec["map"] = json!(map);
        }
        if !list.is_empty() {
            let items = list.into_iter().map(|(name, (x, y))| {
                let mut item = json!({"name": name});
                if let Some(x) = x {
                    item["x"] = json!(x);
                }
                if let Some(y) = y {
                    item["y"] = json!(y);
                }
                item
            });
            spec["list"] = items.collect();
        }
        json!({"spec": spec})
    })
}

/// Replaces empty containers with null.
fn emptied(value: &Value) -> Value {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().map(|(name, field)| (name.clone(), emptied(field))).collect()
        }
        Value::Array(items) if !items.is_empty() => items.iter().map(emptied).collect(),
        Value::Object(_) | Value::Array(_) => Value::Null,
        scalar => scalar.clone(),
    }
}

proptest! {
    #[test]
    fn applying_twice_equals_applying_once(first in any_spec(), second in any_spec()) {
        let mut world = World::custom();
        world.apply("m1", first, true).unwrap();
        world.apply("m2", second.clone(), true).unwrap();
        let once = world.live.clone();
        world.apply("m2", second, true).unwrap();
        prop_assert_eq!(world.live, once);
    }

    #[test]
    fn applying_and_withdrawing_restores(first in any_spec(), second in any_spec()) {
        let mut world = World::custom();
        world.update("base", first);
        let before = world.live.clone().unwrap();
        if world.apply("m", second, false).is_ok() {
            world.apply("m", json!({}), false).unwrap();
            // Fields that the base owned are back; containers that it never had are gone.
            // Containers that became empty are null, as on a real server.
            let live = &world.live.as_ref().unwrap()["spec"];
            prop_assert_eq!(emptied(live), emptied(&before["spec"]));
        }
    }

    #[test]
    fn unforced_applies_never_change_what_others_own(first in any_spec(), second in any_spec()) {
        let mut world = World::custom();
        world.apply("m1", first.clone(), false).unwrap();
        if world.apply("m2", second, false).is_ok() {
            let before = world.live.clone();
            world.apply("m1", first, false).unwrap();
            prop_assert_eq!(&world.live.as_ref().unwrap()["spec"], &before.unwrap()["spec"]);
        }
    }

    #[test]
    fn different_values_have_one_owner(first in any_spec(), second in any_spec()) {
        let mut world = World::custom();
        world.apply("m1", first.clone(), true).unwrap();
        world.apply("m2", second.clone(), true).unwrap();
        for name in ["a", "b"] {
            let (one, two) = (&first["spec"][name], &second["spec"][name]);
            if !two.is_null() && !one.is_null() && one != two {
                let owners = world.owners();
                let key = format!("f:{name}");
                prop_assert!(owners["m1 Apply"]["f:spec"].get(&key).is_none());
                prop_assert!(owners["m2 Apply"]["f:spec"].get(&key).is_some());
            }
        }
    }
}
