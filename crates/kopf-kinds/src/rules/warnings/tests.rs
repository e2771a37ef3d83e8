//! Warnings about pod specs.

use serde_json::{Value, json};

use super::of;

fn check(containers: Value, expected: &[&str]) {
    let object = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    assert_eq!(of("apps", "deployments", &object), expected, "{object}");
}

#[test]
fn ports_in_each_others_way_are_named() {
    let port = |extra: Value| {
        let mut port = json!({"containerPort": 80, "protocol": "TCP"});
        port.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        port
    };
    check(
        json!([{"ports": [port(json!({}))]}, {"ports": [port(json!({"name": "x"}))]}]),
        &["spec.template.spec.containers[1].ports[0]: duplicate port definition with \
         spec.template.spec.containers[0].ports[0]"],
    );
    check(
        json!([{"ports": [port(json!({})), port(json!({"hostPort": 1}))]}]),
        &["spec.template.spec.containers[0].ports[1]: overlapping port definition with \
         spec.template.spec.containers[0].ports[0]"],
    );
    check(json!([{"ports": [port(json!({})), port(json!({"protocol": "UDP"}))]}]), &[]);
}

#[test]
fn repeated_names_are_named() {
    check(
        json!([{"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]}]),
        &["spec.template.spec.containers[0].ports[1]: duplicate port name \"a\" with \
           spec.template.spec.containers[0].ports[0], services and probes that select ports by \
           name will use spec.template.spec.containers[0].ports[0]"],
    );
    check(
        json!([{"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]),
        &[
            "spec.template.spec.containers[0].env[1]: hides previous definition of \"A\", which may \
         be dropped when using apply",
        ],
    );
    check(json!([{"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]}]), &[]);
}
