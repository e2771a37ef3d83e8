//! Annotation keys compared with those of Kopf.

use serde_json::json;

use super::KeyMaker;
use crate::object::Object;

#[track_caller]
fn check(prefix: &str, logical: &str, v2: &str, v1: &str) {
    let maker = KeyMaker::new(prefix).unwrap();
    assert_eq!(maker.v2(logical), format!("{prefix}/{v2}"), "v2 of {logical}");
    assert_eq!(maker.v1(logical), format!("{prefix}/{v1}"), "v1 of {logical}");
    let expected: Vec<_> = if v1 == v2 { vec![v2] } else { vec![v2, v1] };
    let expected: Vec<_> = expected.into_iter().map(|name| format!("{prefix}/{name}")).collect();
    assert_eq!(*maker.keys(logical, &Object::from_value(json!({}))), *expected);
}

#[test]
fn keys_are_those_of_kopf() {
    const PREFIX: &str = "kopf.zalando.org";
    let xs = |count| "x".repeat(count);
    check(PREFIX, "create_fn/sub1", "create_fn.sub1", "create_fn.sub1");
    check(PREFIX, "my.<locals>.fn", "my._locals_.fn", "my._locals_.fn");
    check(PREFIX, &xs(46), &xs(46), &xs(46));
    check(PREFIX, &xs(47), &xs(47), &(xs(39) + "-xRCOAQ"));
    check(PREFIX, &xs(63), &xs(63), &(xs(39) + "-GINbRg"));
    check(PREFIX, &xs(64), &(xs(56) + "-SItAqA"), &(xs(39) + "-SItAqA"));
    check(
        PREFIX,
        &("handler/".to_owned() + &"a/b<c>".repeat(12)),
        &("handler.".to_owned() + &"a.b_c_".repeat(8) + "-c9SdKA"),
        &("handler.".to_owned() + &"a.b_c_".repeat(5) + "a-oQpDTA"),
    );
    check(
        "my-operator.example.com",
        &"fn".repeat(323),
        &("fn".repeat(28) + "-Az-r.g"),
        &("fn".repeat(16) + "-Az-r.g"),
    );
    check(&"p".repeat(60), "create_fn", "create_fn", "crea-AZjFuA");
}

#[test]
fn replica_sets_of_deployments_get_their_own_keys() {
    let maker = KeyMaker::new("kopf.zalando.org").unwrap();
    let owned = |kind: &str, owner: &str| {
        let metadata = json!({"ownerReferences": [{"kind": owner}]});
        let object = Object::from_value(json!({"kind": kind, "metadata": metadata}));
        maker.keys("fn", &object).to_vec()
    };
    assert_eq!(owned("ReplicaSet", "Deployment"), ["kopf.zalando.org/fn-ofDRS"]);
    assert_eq!(owned("ReplicaSet", "Rollout"), ["kopf.zalando.org/fn"]);
    assert_eq!(owned("Pod", "Deployment"), ["kopf.zalando.org/fn"]);
}

#[test]
fn v1_keys_can_be_switched_off() {
    let maker = KeyMaker::new("kopf.zalando.org").unwrap().without_v1();
    assert_eq!(maker.keys(&"x".repeat(47), &Object::from_value(json!({}))).len(), 1);
    assert!(KeyMaker::new("").is_err());
}

#[test]
fn only_whole_prefixes_are_owned() {
    let maker = KeyMaker::new("a.b").unwrap();
    assert!(maker.owns("a.b/c"));
    assert!(!maker.owns("a.bc/d"));
    assert!(!maker.owns("a.b"));
}
