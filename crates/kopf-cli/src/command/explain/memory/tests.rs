//! Snapshot tests of the text for each situation, since it is a user interface.

use expect_test::{Expect, expect};
use kopf_engine::journal::{Chronicle, Unknown};
use kopf_model::Object;
use serde_json::{Value, json};

use super::{render, render_unknown};

fn check(entries: Value, situation: Value, expected: Expect) {
    let mut whole = json!({
        "wake_at": null, "error": null, "gone": false, "deleting": false, "held": false,
        "filtered": [], "background": [], "children": [], "desired_failures": {},
    });
    whole.as_object_mut().unwrap().extend(situation.as_object().unwrap().clone());
    let chronicle: Chronicle = serde_json::from_value(json!({
        "resource": "databases.example.com", "kind": "Database", "namespace": "prod",
        "name": "orders", "uid": "1", "sequence": 7, "entries": entries, "situation": whole,
    }))
    .unwrap();
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    let text = render("http://127.0.0.1:8080", &chronicle, now);
    expected.assert_eq(&format!("Database prod/orders{text}"));
}

#[test]
fn a_retry_is_reported_with_its_history() {
    let attempt = json!({
        "at": "2026-11-15T11:59:58Z", "what": "attempt", "handler": "resize", "number": 3,
        "milliseconds": 12, "ending": "retry", "error": "the cloud is not ready",
        "next_at": "2026-11-15T12:00:42Z",
    });
    let cause = json!({
        "at": "2026-11-15T11:59:58Z", "what": "cause", "reason": "update",
        "changes": [{"field": "spec.size", "old": "1", "new": "2"}], "more": 2,
        "selected": ["resize"],
        "filtered": [{"handler": "rename", "why": "the field spec.name has not changed"}],
    });
    let write = json!({
        "at": "2026-11-15T11:59:59Z", "what": "write", "fields": ["status.phase"], "more": 1,
    });
    check(
        json!([cause, attempt, write]),
        json!({"wake_at": "2026-11-15T12:00:42Z", "background": ["ping"]}),
        expect![[r#"
            Database prod/orders
              the operator at http://127.0.0.1:8080 says:
                checks it again in 42 s, at 2026-11-15T12:00:42Z
                runs in the background: ping
                resize waits for attempt 4, in 42 s, at 2026-11-15T12:00:42Z: the cloud is not ready

              what happened, oldest first:
                11:59:58  update: calls resize
                            ~ spec.size: 1 -> 2
                            and 2 more fields
                            skips rename, because the field spec.name has not changed
                11:59:58  resize, attempt 3, 12 ms: failed, will be retried: the cloud is not ready
                11:59:59  wrote status.phase and 1 more
        "#]],
    );
}

#[test]
fn a_permanent_failure_is_reported() {
    let attempt = json!({
        "at": "2026-11-15T11:59:58Z", "what": "attempt", "handler": "resize", "number": 1,
        "milliseconds": 0, "ending": "failure", "error": "no such plan", "next_at": null,
    });
    check(
        json!([attempt]),
        json!({}),
        expect![[r#"
            Database prod/orders
              the operator at http://127.0.0.1:8080 says:
                is waiting for the next change
                resize failed permanently after 1 attempt: no such plan

              what happened, oldest first:
                11:59:58  resize, attempt 1, 0 ms: failed permanently: no such plan
        "#]],
    );
}

#[test]
fn a_filtered_object_shows_why() {
    let filtered = json!([{"handler": "resize", "why": "the label tier is `test`, not `live`"}]);
    check(
        json!([]),
        json!({"filtered": filtered}),
        expect![[r#"
            Database prod/orders
              the operator at http://127.0.0.1:8080 says:
                is waiting for the next change
                not called: resize, because the label tier is `test`, not `live`
        "#]],
    );
}

#[test]
fn a_deletion_held_by_a_finalizer_is_reported() {
    check(
        json!([]),
        json!({"deleting": true, "held": true, "wake_at": "2026-11-15T12:00:10Z"}),
        expect![[r#"
            Database prod/orders
              the operator at http://127.0.0.1:8080 says:
                it is being deleted, and held by the operator's finalizer
                checks it again in 10 s, at 2026-11-15T12:00:10Z
        "#]],
    );
}

#[test]
fn children_are_reported_with_what_is_wrong() {
    let children = json!([
        {"child": "Service prod/web", "waiting": null, "refused": null, "next_at": null},
        {"child": "Deployment prod/web", "waiting": "0 of 2 replicas are available",
         "refused": null, "next_at": null},
        {"child": "Lease prod/web", "waiting": null, "refused": "no quota",
         "next_at": "2026-11-15T12:00:08Z"},
    ]);
    check(
        json!([]),
        json!({"children": children, "desired_failures": {"routes": "no such host"}}),
        expect![[r#"
            Database prod/orders
              the operator at http://127.0.0.1:8080 says:
                is waiting for the next change
                routes could not compute the desired children: no such host
                child Service prod/web is ready
                child Deployment prod/web is not ready: 0 of 2 replicas are available
                child Lease prod/web was refused: no quota; is applied again in 8 s, at 2026-11-15T12:00:08Z
        "#]],
    );
}

#[test]
fn an_object_that_is_not_watched_is_reported_from_a_quiet_one() {
    let resource = kopf_model::Resource {
        group: "example.com".into(),
        version: "v1".into(),
        plural: "databases".into(),
        kind: "Database".into(),
        singular: "database".into(),
        shortcuts: Default::default(),
        categories: Default::default(),
        subresources: Default::default(),
        namespaced: true,
        preferred: true,
        verbs: Default::default(),
    };
    let unwatched = Unknown::default();
    let quiet = Unknown { watched: true, ..Unknown::default() };
    let narrow = Unknown {
        labels: Some("!old,app,tier=live".into()),
        fields: Some("metadata.name=main".into()),
        ..quiet.clone()
    };
    let object = |metadata: Value| Object::from_value(json!({"metadata": metadata}));
    let fits = object(json!({"name": "main", "labels": {"tier": "live", "app": "x"}}));
    let fails = object(json!({"name": "x", "labels": {"tier": "test", "old": ""}}));
    expect![[r#"
        Database
          the operator at http://x does not watch it
          hint: it has no handlers for databases, or serves other namespaces
    "#]]
    .assert_eq(&format!("Database{}", render_unknown("http://x", &unwatched, &resource, None)));
    expect![[r#"
        Database
          the operator at http://x knows nothing about it: nothing has happened to it recently
    "#]]
    .assert_eq(&format!("Database{}", render_unknown("http://x", &quiet, &resource, None)));
    let quiet = render_unknown("http://x", &quiet, &resource, None);
    assert_eq!(render_unknown("http://x", &narrow, &resource, Some(&fits)), quiet);
    expect![[r#"
        Database
          the operator at http://x does not watch it, because it is not labelled !old, labelled app, labelled tier=live, metadata.name=main
          hint: all its handlers for databases are only for such objects
    "#]].assert_eq(&format!(
        "Database{}",
        render_unknown("http://x", &narrow, &resource, Some(&fails))
    ));
}
