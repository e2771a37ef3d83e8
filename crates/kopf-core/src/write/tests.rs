//! Requests for patches, against a server that responds.

use kopf_model::json_patch::{self, Operation};
use kopf_model::{Object, Patch, Resource, merge};
use serde_json::{Map, Value, json};

use super::{End, Rejection, Request, Writer};
use crate::test_fixture::{FINALIZER, resource};

/// A request that was sent, without its precondition.
#[derive(Clone, Debug, PartialEq)]
struct Write {
    to_status: bool,
    content: Content,
}

#[derive(Clone, Debug, PartialEq)]
enum Content {
    Merge(Map<String, Value>),
    Json(Vec<Operation>),
}

impl Write {
    fn of(request: &Request<'_>) -> Self {
        let content = match &request.content {
            super::Content::Merge(part, _) => Content::Merge(
                part.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            ),
            super::Content::Json(operations) => Content::Json(operations.clone()),
        };
        Self { to_status: request.to_status, content }
    }
}

/// The next request, with its body as sent.
fn next(writer: &mut Writer<'_>) -> (Write, String) {
    let request = writer.next_request().expect("a request");
    let body = String::from_utf8(request.content.to_bytes()).expect("text");
    (Write::of(&request), body)
}

fn with_status() -> Resource {
    let mut resource = resource();
    resource.subresources.insert("status".into());
    resource
}

fn body() -> Value {
    json!({"metadata": {"name": "x", "resourceVersion": "5"}, "spec": {"a": 1}})
}

/// Responds as a server does: every write creates a new version.
fn answer(body: &Value, write: &Write) -> Value {
    let mut next = body.clone();
    match &write.content {
        Content::Merge(patch) => merge::apply(&mut next, patch),
        Content::Json(operations) => json_patch::apply(&mut next, operations).unwrap(),
    }
    let version: u64 = next["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    next["metadata"]["resourceVersion"] = json!((version + 1).to_string());
    next
}

/// All requests for a patch, and the body at the end.
fn send_all(patch: Patch, resource: &Resource, body: Value) -> (Vec<Write>, Value) {
    let object = Object::from_value(body.clone());
    let mut writer = Writer::new(&patch, resource, &object);
    let (mut writes, mut body) = (Vec::new(), body);
    while let Some(request) = writer.next_request() {
        let write = Write::of(&request);
        body = answer(&body, &write);
        writer.accepted(Object::from_value(body.clone()));
        writes.push(write);
    }
    assert!(writer.next_request().is_none());
    match writer.end() {
        End::Unchanged => assert_eq!(writes, []),
        End::Changed(object) => assert_eq!(object.value(), &body),
        other => panic!("{other:?}"),
    }
    (writes, body)
}

fn shown(writes: &[Write]) -> Vec<String> {
    let show = |write: &Write| {
        let place = if write.to_status { "status" } else { "main" };
        match &write.content {
            Content::Merge(patch) => format!("{place} {}", Value::Object(patch.clone())),
            Content::Json(operations) => {
                format!("{place} {}", serde_json::to_string(operations).unwrap())
            }
        }
    };
    writes.iter().map(show).collect()
}

#[test]
fn nothing_is_sent_for_nothing() {
    let (writes, _) = send_all(Patch::default(), &resource(), body());
    assert_eq!(writes, []);
    let mut same = Patch::default();
    same.set(&"spec.a".into(), json!(1));
    same.set_annotation("absent", None);
    same.remove_finalizer(FINALIZER);
    assert_eq!(send_all(same, &with_status(), body()).0, []);
}

#[test]
fn everything_fits_into_one_merge_without_a_status_subresource() {
    let mut patch = Patch::default();
    patch.set(&"spec.a".into(), json!(2));
    patch.set(&"status.s".into(), json!(3));
    let (writes, _) = send_all(patch, &resource(), body());
    assert_eq!(shown(&writes), [r#"main {"spec":{"a":2},"status":{"s":3}}"#]);
}

#[test]
fn the_status_subresource_gets_its_own_request() {
    let mut patch = Patch::default();
    patch.set(&"spec.a".into(), json!(2));
    patch.set(&"status.s".into(), json!(3));
    let (writes, end) = send_all(patch, &with_status(), body());
    assert_eq!(shown(&writes), [r#"status {"status":{"s":3}}"#, r#"main {"spec":{"a":2}}"#]);
    assert_eq!(end["status"], json!({"s": 3}));
}

#[test]
fn transformations_go_with_the_merge_in_one_json_patch() {
    let mut patch = Patch::default();
    patch.set(&"spec.a".into(), json!(2));
    patch.add_finalizer(FINALIZER);
    let (writes, end) = send_all(patch, &with_status(), body());
    assert_eq!(
        shown(&writes),
        [concat!(
            r#"main [{"op":"test","path":"/metadata/resourceVersion","value":"5"},"#,
            r#"{"op":"add","path":"/metadata/finalizers","#,
            r#""value":["kopf.zalando.org/KopfFinalizerMarker"]},"#,
            r#"{"op":"replace","path":"/spec/a","value":2}]"#
        )]
    );
    assert_eq!(end["metadata"]["finalizers"], json!([FINALIZER]));
}

#[test]
fn both_parts_may_be_transformed() {
    let mut patch = Patch::default();
    patch.set(&"spec.a".into(), json!(2));
    patch.set(&"status.s".into(), json!(3));
    patch.transform(|body| body["spec"]["list"] = json!([1]));
    patch.transform(|body| body["status"]["list"] = json!([2]));
    let (writes, end) = send_all(patch, &with_status(), body());
    assert_eq!(writes.iter().map(|write| write.to_status).collect::<Vec<_>>(), [true, false]);
    assert!(writes.iter().all(|write| matches!(write.content, Content::Json(_))));
    let Content::Json(operations) = &writes[1].content else { unreachable!() };
    assert_eq!(operations[0], Operation::test_version("6"), "the version of the first answer");
    assert_eq!(end["spec"], json!({"a": 2, "list": [1]}));
    assert_eq!(end["status"], json!({"s": 3, "list": [2]}));
}

#[test]
fn parts_without_transformations_stay_merges() {
    let mut patch = Patch::default();
    patch.set(&"spec.a".into(), json!(2));
    patch.set(&"status.s".into(), json!(3));
    patch.transform(|body| body["status"]["list"] = json!([2]));
    let (writes, _) = send_all(patch, &with_status(), body());
    assert!(matches!(writes[0].content, Content::Json(_)));
    assert!(matches!(writes[1].content, Content::Merge(_)));
}

#[test]
fn an_object_is_released_only_after_its_status_is_written() {
    let mut deleting = body();
    deleting["metadata"]["deletionTimestamp"] = json!("t");
    deleting["metadata"]["finalizers"] = json!([FINALIZER]);
    let mut patch = Patch::default();
    patch.set(&"status.s".into(), json!(3));
    patch.remove_finalizer(FINALIZER);
    let (writes, _) = send_all(patch, &with_status(), deleting);
    assert_eq!(
        shown(&writes),
        [
            r#"status {"status":{"s":3}}"#,
            concat!(
                r#"main [{"op":"test","path":"/metadata/resourceVersion","value":"6"},"#,
                r#"{"op":"remove","path":"/metadata/finalizers"}]"#
            ),
        ]
    );
}

#[test]
fn after_a_conflict_the_request_is_rebuilt_from_the_newer_state() {
    let mut patch = Patch::default();
    patch.set(&"spec.a".into(), json!(2));
    patch.add_finalizer(FINALIZER);
    let mut newer = body();
    newer["metadata"]["resourceVersion"] = json!("9");
    newer["metadata"]["finalizers"] = json!(["other"]);
    let (resource, newer) = (resource(), Object::from_value(newer));
    let mut writer = Writer::new(&patch, &resource, &newer);
    let (write, _) = next(&mut writer);
    let Content::Json(operations) = &write.content else { panic!("{write:?}") };
    assert_eq!(operations[0], Operation::test_version("9"));
    assert_eq!(operations[1].path(), "/metadata/finalizers/1");
    writer.rejected(Rejection::Conflict, false);
    assert!(writer.next_request().is_none());
    let End::Outdated(remaining) = writer.end() else { panic!("it is outdated") };
    assert_eq!((remaining.merge.len(), remaining.transformations.len()), (1, 1));
}

#[test]
fn accepted_parts_do_not_remain() {
    let mut patch = Patch::default();
    patch.set(&"spec.a".into(), json!(2));
    patch.set(&"status.s".into(), json!(3));
    let object = Object::from_value(body());
    let mut writer = Writer::new(&patch, &with_status(), &object);
    let (write, _) = next(&mut writer);
    writer.accepted(Object::from_value(answer(&body(), &write)));
    assert_eq!(Value::Object(writer.remaining().merge), json!({"spec": {"a": 2}}));
}

#[test]
fn finalizers_alone_are_edited_as_on_the_whole_object() {
    let lists = [vec![], vec![FINALIZER], vec!["a"], vec!["a", FINALIZER, "b"], vec![FINALIZER; 2]];
    for list in lists {
        for edit in [Patch::add_finalizer, Patch::remove_finalizer] {
            let mut before = body();
            if !list.is_empty() {
                before["metadata"]["finalizers"] = json!(list);
            }
            let mut patch = Patch::default();
            edit(&mut patch, FINALIZER);
            let mut expected = patch.applied_to(&before).unwrap();
            let (writes, after) = send_all(patch, &with_status(), before.clone());
            let is_change = expected != before;
            assert_eq!(writes.len(), usize::from(is_change), "{list:?}");
            if is_change {
                expected["metadata"]["resourceVersion"] = json!("6");
            }
            assert_eq!(after, expected, "{list:?}");
        }
    }
}

fn condition(kind: &str) -> Value {
    json!({"type": kind, "status": "True"})
}

fn with_condition(kind: &str) -> Patch {
    let mut patch = Patch::default();
    patch.set(&"status.conditions".into(), json!([condition(kind)]));
    patch
}

#[test]
fn conditions_are_merged_into_the_newest_list_after_a_conflict() {
    for transforms in [false, true] {
        let mut patch = Patch::default();
        patch.absorb(with_condition("Ours"));
        if transforms {
            patch.transform(|body| body["status"]["seen"] = json!(true));
        }
        let object = Object::from_value(body());
        let mut writer = Writer::new(&patch, &with_status(), &object);
        assert!(next(&mut writer).0.to_status);
        writer.rejected(Rejection::Conflict, false);
        let mut newer = body();
        newer["status"] = json!({"conditions": [condition("Theirs")]});
        let newest = Object::from_value(newer.clone());
        let left;
        if transforms {
            let End::Outdated(patch) = writer.end() else { panic!("it is outdated") };
            left = patch;
            writer = Writer::new(&left, &with_status(), &newest);
        } else {
            assert_eq!(next(&mut writer).1, "{}", "a question without any change");
            writer.accepted(newest.clone());
        }
        let (write, _) = next(&mut writer);
        let after = answer(&newer, &write);
        assert_eq!(
            after["status"]["conditions"],
            json!([condition("Theirs"), condition("Ours")]),
            "transforms: {transforms}"
        );
        writer.accepted(Object::from_value(after));
        assert!(writer.remaining().conditions.is_empty());
    }
}

#[test]
fn conditions_go_with_everything_else_without_a_status_subresource() {
    let mut patch = with_condition("Ours");
    patch.set(&"spec.a".into(), json!(2));
    let (writes, after) = send_all(patch, &resource(), body());
    assert_eq!(writes.len(), 1);
    assert_eq!(after["status"]["conditions"], json!([condition("Ours")]));
    let (writes, _) = send_all(with_condition("Ours"), &resource(), after);
    assert_eq!(writes, [], "they are there already");
}

fn object_of(uid: &str, version: &str) -> Object {
    Object::from_value(json!({
        "metadata": {"name": "x", "uid": uid, "resourceVersion": version}, "spec": {"a": 1},
    }))
}

fn result_and_note() -> Patch {
    let mut patch = Patch::default();
    patch.set(&"status.s".into(), json!(3));
    patch.set_annotation("note", Some("done".into()));
    patch
}

#[test]
fn a_status_is_sent_to_newer_versions_after_conflicts_and_finally_to_any() {
    let (patch, object) = (result_and_note(), object_of("u", "5"));
    let mut writer = Writer::new(&patch, &with_status(), &object);
    let mut version = 5;
    for _ in 0..3 {
        let (write, sent) = next(&mut writer);
        assert!(write.to_status);
        let guard = format!(r#""metadata":{{"resourceVersion":"{version}"}}"#);
        assert_eq!(sent, format!(r#"{{"status":{{"s":3}},{guard}}}"#));
        writer.rejected(Rejection::Conflict, false);
        let (question, sent) = next(&mut writer);
        assert_eq!((question.to_status, &*sent), (false, r#"{"metadata":{"uid":"u"}}"#));
        version += 1;
        writer.accepted(object_of("u", &version.to_string()));
    }
    assert!(next(&mut writer).1.contains("resourceVersion"));
    writer.rejected(Rejection::Conflict, false);
    let (write, sent) = next(&mut writer);
    assert!(write.to_status);
    assert_eq!(sent, r#"{"status":{"s":3},"metadata":{"uid":"u"}}"#);
    writer.accepted(object_of("u", "9"));
    let (write, sent) = next(&mut writer);
    assert!(!write.to_status);
    assert_eq!(sent, r#"{"metadata":{"uid":"u","annotations":{"note":"done"}}}"#);
    writer.accepted(object_of("u", "10"));
    assert!(writer.next_request().is_none());
    assert!(matches!(writer.end(), End::Changed(object) if object.resource_version() == "10"));
}

#[test]
fn a_rejected_status_does_not_block_the_rest() {
    let (patch, object) = (result_and_note(), object_of("u", "5"));
    let mut writer = Writer::new(&patch, &with_status(), &object);
    assert!(next(&mut writer).0.to_status);
    writer.rejected(Rejection::Invalid, false);
    assert!(!next(&mut writer).0.to_status);
    writer.accepted(object_of("u", "6"));
    assert!(writer.next_request().is_none());
    assert!(matches!(writer.end(), End::Failed), "the status is not written");
}

#[test]
fn an_object_is_not_marked_as_handled_while_its_status_may_be_written() {
    for rejection in [Rejection::Transient, Rejection::Other] {
        let (patch, object) = (result_and_note(), object_of("u", "5"));
        let mut writer = Writer::new(&patch, &with_status(), &object);
        assert!(next(&mut writer).0.to_status);
        writer.rejected(rejection, false);
        let goes_on = writer.next_request().is_some();
        assert_eq!(goes_on, rejection == Rejection::Other, "{rejection:?}");
    }
}

#[test]
fn another_object_of_the_same_name_ends_it() {
    let (patch, object) = (result_and_note(), object_of("u", "5"));
    let mut writer = Writer::new(&patch, &with_status(), &object);
    assert!(next(&mut writer).0.to_status);
    writer.accepted(object_of("other", "6"));
    assert!(writer.next_request().is_none());
    assert!(matches!(writer.end(), End::Replaced));
    let mut writer = Writer::new(&patch, &resource(), &object);
    assert!(!next(&mut writer).0.to_status);
    writer.rejected(Rejection::Conflict, true);
    assert!(writer.next_request().is_none());
    assert!(matches!(writer.end(), End::Replaced));
}

#[test]
fn fields_that_the_server_drops_are_named() {
    let (patch, object) = (result_and_note(), object_of("u", "5"));
    let mut writer = Writer::new(&patch, &with_status(), &object);
    while let Some(request) = writer.next_request() {
        drop(request);
        writer.accepted(object_of("u", "6"));
    }
    assert_eq!(writer.unstored(), ["status"]);
}
