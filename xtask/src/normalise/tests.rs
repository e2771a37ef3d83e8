//! What the normaliser drops and what it keeps.

use serde_json::json;

use super::*;

const UID: &str = "8c28e8c9-c6bc-4ce6-b6c3-fb8b3eb1274e";

#[test]
fn identities_become_ordinals_of_first_appearance() {
    let mut normaliser = Normaliser::default();
    let object = |version: &str| json!({"metadata": {"uid": UID, "resourceVersion": version}});
    let result = ["305", "307", "305"].map(|version| normaliser.value(&object(version)));
    assert_eq!(result[0], json!({"metadata": {"uid": "<uid:1>", "resourceVersion": "<rv:1>"}}));
    assert_eq!(result[1]["metadata"]["resourceVersion"], "<rv:2>");
    assert_eq!(result[2], result[0]);
}

#[test]
fn list_versions_are_not_counted() {
    let mut normaliser = Normaliser::default();
    let list = json!({"metadata": {"resourceVersion": "9", "continue": "abc"}, "items": [
        {"metadata": {"resourceVersion": "7"}}]});
    assert_eq!(
        normaliser.value(&list),
        json!({"metadata": {"resourceVersion": "<list-rv>", "continue": "<continue>"}, "items": [
            {"metadata": {"resourceVersion": "<rv:1>"}}]})
    );
    let bookmark = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "11"}}});
    assert_eq!(normaliser.value(&bookmark)["object"]["metadata"]["resourceVersion"], "<list-rv>");
}

#[test]
fn only_the_clock_of_the_server_is_dropped() {
    let mut normaliser = Normaliser::default();
    let value = json!({"creationTimestamp": "2026-11-15T19:43:59Z", "at": "2026-11-15T19:43:59Z",
        "lastTransitionTime": "2026-11-15T19:43:59.123456Z"});
    assert_eq!(
        normaliser.value(&value),
        json!({"creationTimestamp": "<time>", "at": "2026-11-15T19:43:59Z",
            "lastTransitionTime": "<microtime>"})
    );
}

#[test]
fn generated_names_are_followed_into_other_text() {
    let mut normaliser = Normaliser::default().with_alias("d-77", "<ns>");
    normaliser.value(&json!({"metadata": {"generateName": "x-", "name": "x-abcde"}}));
    assert_eq!(
        normaliser.text("pods \"x-abcde\" in d-77 not found"),
        "pods \"x-<generated:1>\" in <ns> not found"
    );
}

#[test]
fn versions_in_messages_follow_their_ordinals() {
    let mut normaliser = Normaliser::default();
    normaliser.value(&json!({"resourceVersion": "305"}));
    assert_eq!(
        normaliser.text("the ResourceVersion in the precondition (1) does not match 305 or 99"),
        "the ResourceVersion in the precondition (1) does not match <rv:1> or <rv>"
    );
    assert_eq!(normaliser.text("must be at most 305 long"), "must be at most 305 long");
}

#[test]
fn causes_are_a_set() {
    let mut normaliser = Normaliser::default();
    let status = |first: &str, second: &str| {
        json!({"kind": "Status", "message": format!("X \"a\" is invalid: [{first}, {second}]"),
            "details": {"causes": [{"field": first}, {"field": second}]}})
    };
    assert_eq!(normaliser.value(&status("a", "b")), normaliser.value(&status("b", "a")));
}

#[test]
fn ages_in_tables_are_masked() {
    let table = json!({"columnDefinitions": [{"name": "Name"}, {"name": "Age"}],
        "rows": [{"cells": ["5s", "5s"]}, {"cells": ["a", "<unknown>"]}]});
    let result = Normaliser::default().value(&table);
    assert_eq!(result["rows"][0]["cells"], json!(["5s", "<age>"]));
    assert_eq!(result["rows"][1]["cells"], json!(["a", "<unknown>"]));
}

#[test]
fn a_recorded_request_becomes_a_live_one() {
    let mut translation = Translation::default();
    let answer =
        |uid: &str, version: &str| json!({"metadata": {"uid": uid, "resourceVersion": version}});
    translation.learn(&answer(UID, "305"), &answer("11111111-c6bc-4ce6-b6c3-fb8b3eb1274e", "12"));
    assert_eq!(
        translation.apply("/x?resourceVersion=305&limit=3050"),
        "/x?resourceVersion=12&limit=3050"
    );
    assert_eq!(translation.apply(UID), "11111111-c6bc-4ce6-b6c3-fb8b3eb1274e");
}
