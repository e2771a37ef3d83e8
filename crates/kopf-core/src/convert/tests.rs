//! Routes between versions, the converted objects, and invalid conversions.

use std::sync::Arc;

use kopf_model::Selector;
use serde_json::{Value, json};

use super::{Chart, charts, completed, problems};
use crate::handler::{ConvertOptions, Handler, HandlerKind};
use crate::test_fixture;

fn databases(version: &str) -> Selector {
    Selector::exact("example.com", version, "databases")
}

fn conversion(id: &str, from: Selector, to: Selector) -> Handler {
    let kind = HandlerKind::Convert(ConvertOptions { to, definition: None });
    test_fixture::handler(id, kind).for_resources(from)
}

/// Conversions named by their versions, such as `v1-v2`.
fn chart(pairs: &[&str]) -> Chart {
    let handlers: Vec<Arc<Handler>> = pairs
        .iter()
        .map(|pair| {
            let (from, to) = pair.split_once('-').expect("a pair");
            Arc::new(conversion(pair, databases(from), databases(to)))
        })
        .collect();
    charts(&handlers).pop().expect("there are conversions")
}

fn check_route(pairs: &[&str], from: &str, to: &str, expected: &str) {
    let chart = chart(pairs);
    let route = chart.route(from, to).expect("there is a way");
    let ids: Vec<&str> = route.iter().map(|(_, handler)| &*handler.id).collect();
    assert_eq!(ids.join(" "), expected, "{pairs:?} from {from} to {to}");
}

#[test]
fn the_shortest_route_is_taken_and_the_first_of_several() {
    let line = ["v1-v2", "v2-v3", "v3-v2", "v2-v1"];
    check_route(&line, "v1", "v2", "v1-v2");
    check_route(&line, "v1", "v3", "v1-v2 v2-v3");
    check_route(&line, "v3", "v1", "v3-v2 v2-v1");
    check_route(&["v1-v2", "v2-v3", "v1-v3"], "v1", "v3", "v1-v3");
    let diamond = ["v1-a", "v1-b", "b-v2", "a-v2"];
    check_route(&diamond, "v1", "v2", "v1-a a-v2");
    let other = ["v1-b", "v1-a", "a-v2", "b-v2"];
    check_route(&other, "v1", "v2", "v1-b b-v2");
}

#[test]
fn objects_in_the_right_version_stay_as_they_are() {
    check_route(&["v1-v2"], "v1", "v1", "");
    check_route(&["v1-v2"], "v9", "v9", "");
}

#[test]
fn a_missing_route_is_reported_with_the_reachable_versions() {
    let chart = chart(&["v1-v2", "v2-v3", "v4-v1"]);
    let error = chart.route("v1", "v4").expect_err("there is no way");
    assert_eq!(
        error.to_string(),
        "no conversions lead from v1 to v4, but from v1 to v2, v3: add a handler with \
         `#[kopf::on::convert(..., to = ...)]`"
    );
    let error = chart.route("v3", "v4").expect_err("there is no way");
    assert!(error.to_string().contains("but from v3 to nothing"), "{error}");
}

#[test]
fn gaps_are_found_before_any_request() {
    let gaps = |pairs: &[&str]| -> Vec<String> {
        chart(pairs).gaps().iter().map(|gap| format!("{}-{}", gap.from, gap.to)).collect()
    };
    assert_eq!(gaps(&["v1-v2", "v2-v1"]), [""; 0]);
    assert_eq!(gaps(&["v1-v2", "v2-v3", "v2-v1"]), ["v3-v1", "v3-v2"]);
}

#[test]
fn each_resource_has_its_own_chart() {
    let backups = |version| Selector::exact("example.com", version, "backups");
    let handlers = [
        conversion("a", databases("v1"), databases("v2")),
        conversion("b", backups("v1"), backups("v2")),
        conversion("c", backups("v2"), backups("v2")),
    ];
    let charts = charts(&handlers.map(Arc::new));
    let names: Vec<String> = charts.iter().map(Chart::name).collect();
    assert_eq!(names, ["backups.example.com", "databases.example.com"]);
    assert_eq!(charts[0].steps.len(), 1, "what makes no sense is left out");
}

fn check_completed(result: Value, expected: Value) {
    let original = json!({
        "apiVersion": "example.com/v1", "kind": "Database",
        "metadata": {"name": "a", "uid": "1", "labels": {"app": "web"}, "annotations": {"n": "1"}},
        "spec": {"size": "5Gi"}, "status": {"phase": "ready"},
    });
    let completed = completed(&original, result, "example.com", "v2").expect("an object");
    let mut whole = json!({
        "apiVersion": "example.com/v2", "kind": "Database",
        "metadata": {"name": "a", "uid": "1", "labels": {"app": "web"}, "annotations": {"n": "1"}},
        "status": {"phase": "ready"},
    });
    kopf_model::merge::apply(&mut whole, expected.as_object().expect("an object"));
    assert_eq!(completed, whole);
}

#[test]
fn the_identity_of_an_object_survives_its_conversion() {
    let spec = json!({"size": 5});
    check_completed(json!({"spec": spec}), json!({"spec": spec}));
    let new = json!({"apiVersion": "x/v9", "kind": "X", "metadata": {"name": ""}, "spec": spec});
    check_completed(new, json!({"spec": spec}));
    let renamed = json!({"metadata": {"name": "b", "uid": "2", "finalizers": ["x"]}});
    check_completed(renamed, json!({}));
}

#[test]
fn labels_and_annotations_are_those_of_the_result_if_it_has_any() {
    let labels = json!({"metadata": {"labels": {"tier": "db"}}});
    check_completed(labels, json!({"metadata": {"labels": {"tier": "db", "app": null}}}));
    let removed = json!({"metadata": {"annotations": {}}});
    check_completed(removed, json!({"metadata": {"annotations": {"n": null}}}));
}

#[test]
fn a_status_is_kept_unless_the_result_has_one() {
    check_completed(
        json!({"status": {"state": 1}}),
        json!({"status": {"phase": null, "state": 1}}),
    );
    let result = completed(&json!({"status": {"a": 1}}), json!({"status": null}), "g", "v2");
    assert_eq!(result.expect("an object")["status"], Value::Null);
}

#[test]
fn only_objects_are_results() {
    for (result, expected) in
        [(json!(null), "nothing"), (json!([1]), "a list"), (json!("x"), "a single value")]
    {
        let error = completed(&json!({}), result, "g", "v2").expect_err("no object").to_string();
        assert!(error.ends_with(&format!("not {expected}")), "{error}");
    }
}

#[track_caller]
fn check_problems(handlers: &[Handler], expected: &[&str]) {
    assert_eq!(problems(handlers), expected);
}

#[test]
fn valid_conversions_have_no_problems() {
    let up = conversion("up", databases("v1"), databases("v2"));
    let down = conversion("down", databases("v2"), databases("v1"));
    check_problems(&[up, down, test_fixture::handler("create", HandlerKind::Create)], &[]);
}

#[test]
fn mistakes_are_reported_with_their_handlers() {
    let of = |from, to| conversion("up", from, to);
    let unversioned = Selector::parse(&["databases.example.com"]).expect("a selector");
    check_problems(
        &[of(unversioned, databases("v2"))],
        &["conversion up needs a group, a version and a plural, and has \
           example.com/*/databases and example.com/v2/plural=databases"],
    );
    check_problems(
        &[of(databases("v1"), Selector::exact("other.com", "v2", "databases"))],
        &["conversion up leads from example.com/v1/plural=databases to \
           other.com/v2/plural=databases: a conversion is between versions of one resource"],
    );
    check_problems(
        &[of(
            Selector::exact("apps", "v1", "deployments"),
            Selector::exact("apps", "v2", "deployments"),
        )],
        &["conversion up is for apps/v1/plural=deployments, which is built in: only custom \
           resources convert"],
    );
    check_problems(
        &[of(databases("v1"), databases("v1"))],
        &["conversion up leads from v1 to itself"],
    );
    let parsed = Selector::parse(&["example.com", "v1", "databases"]).expect("a selector");
    let twin = conversion("twin", parsed, databases("v2"));
    check_problems(
        &[of(databases("v1"), databases("v2")), twin],
        &["conversions up and twin are between the same versions: remove one of them"],
    );
}

#[test]
fn all_versions_have_one_kind() {
    let old = json!({"spec": {"names": {"kind": "Database"}}});
    let new = json!({"spec": {"names": {"kind": "DatabaseV2"}}});
    let mut up = conversion("up", databases("v1"), databases("v2"));
    up.definition = Some(old.into());
    up.kind =
        HandlerKind::Convert(ConvertOptions { to: databases("v2"), definition: Some(new.into()) });
    check_problems(
        &[up],
        &["conversion up leads from \"Database\" to \"DatabaseV2\": all versions of a resource \
           have one kind"],
    );
}
