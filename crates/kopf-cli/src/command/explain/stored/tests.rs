//! Snapshot tests of the text for each situation, since it is a user interface.

use expect_test::{Expect, expect};
use kopf_model::Object;
use serde_json::{Value, json};

use super::{Names, read};

const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

fn check(metadata: Value, expected: Expect) {
    let object = Object::from_value(json!({
        "apiVersion": "example.com/v1",
        "kind": "Database",
        "metadata": metadata,
        "spec": {"size": 2},
    }));
    let names = Names { prefix: "kopf.zalando.org".into(), finalizer: FINALIZER.into() };
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    expected.assert_eq(&read(&object, &names).unwrap().render(now, false));
}

#[test]
fn an_object_without_notes_was_never_handled() {
    check(
        json!({"name": "orders", "namespace": "prod"}),
        expect![[r#"
            Database prod/orders
              was never handled by an operator
              hint: is an operator running, does it serve this namespace, do its filters match?
        "#]],
    );
}

#[test]
fn an_unchanged_object_is_handled() {
    let annotations =
        json!({"kopf.zalando.org/last-handled-configuration": "{\"spec\":{\"size\":2}}\n"});
    check(
        json!({"name": "orders", "annotations": annotations}),
        expect![[r#"
            Database orders
              is handled: nothing has changed since
              hint: handlers that failed permanently count as done; their errors are in the operator's log
        "#]],
    );
}

#[test]
fn a_retry_is_reported_with_its_error_and_its_time() {
    let record = json!({
        "started": "2026-11-15T11:58:00.000000+00:00",
        "delayed": "2026-11-15T12:00:42.000000+00:00",
        "purpose": "update", "retries": 3, "success": false, "failure": false,
        "message": "the cloud is not ready",
    });
    let annotations = json!({
        "kopf.zalando.org/last-handled-configuration": "{\"spec\":{\"size\":1}}\n",
        "kopf.zalando.org/resize": record.to_string(),
    });
    check(
        json!({"name": "orders", "annotations": annotations}),
        expect![[r#"
            Database orders
              has changed since it was last handled:
                ~ spec.size: 1 -> 2

              handler resize (update)
                waits for its next attempt in 42 s, at 2026-11-15T12:00:42Z, after 3 attempts
                last error: the cloud is not ready
        "#]],
    );
}

#[test]
fn a_deletion_held_by_us_and_by_others_is_reported() {
    check(
        json!({
            "name": "orders",
            "deletionTimestamp": "2026-11-15T11:59:00Z",
            "finalizers": [FINALIZER, "other.example.com/hold"],
        }),
        expect![[r#"
            Database orders
              deletion was requested at 2026-11-15T11:59:00Z, and it is held until its handlers are done
              also held by the finalizer other.example.com/hold, which is not ours
        "#]],
    );
}

#[test]
fn a_permanent_failure_beside_open_handlers_is_reported() {
    let failed = json!({"purpose": "create", "retries": 1, "success": false, "failure": true, "message": "no such plan"});
    let open = json!({"purpose": "create", "retries": 0, "success": false, "failure": false});
    check(
        json!({"name": "orders", "annotations": {
            "kopf.zalando.org/a": failed.to_string(),
            "kopf.zalando.org/b": open.to_string(),
        }}),
        expect![[r#"
            Database orders
              is being handled for the first time

              handler a (create)
                failed permanently after 1 attempt
                last error: no such plan

              handler b (create)
                has not been called yet
        "#]],
    );
}

#[test]
fn an_object_with_desired_children_is_looked_after() {
    let conditions = json!([{"type": "Ready", "reason": "ChildrenReady", "message": "all"}]);
    let object = Object::from_value(json!({
        "apiVersion": "example.com/v1", "kind": "Mirror", "metadata": {"name": "quay"},
        "status": {"conditions": conditions},
    }));
    let names = Names { prefix: "kopf.zalando.org".into(), finalizer: FINALIZER.into() };
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    expect![[r#"
        Mirror quay
          has children that an operator manages
    "#]]
    .assert_eq(&read(&object, &names).unwrap().render(now, false));
}
