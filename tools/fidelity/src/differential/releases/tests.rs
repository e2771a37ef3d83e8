use serde_json::json;

use super::*;

/// A former run in which every step of the script `s` was equal.
fn former() -> Former {
    Former::parse("## Scripts\n\n| s | 9 |\n")
}

fn result(request: &str, sides: Sides, differences: Vec<Difference>) -> ScriptResult {
    let step = StepResult {
        request: request.to_owned(),
        verdict: Verdict::Different,
        differences,
        sides: Some(sides),
    };
    ScriptResult { name: "s".to_owned(), steps: vec![step] }
}

fn verdict(pointer: &str, judge: Option<Value>, subject: Option<Value>) -> Verdict {
    let difference = Difference { pointer: pointer.to_owned(), judge, subject };
    let sides = Sides { judge: json!({"status": 200}), subject: json!({"status": 200}) };
    let mut results = [result("GET /x", sides, vec![difference])];
    explain(&mut results, &former());
    results[0].steps[0].verdict
}

/// The verdict on two answers whose differences are found as in a run.
fn compared(request: &str, judge: Value, subject: Value) -> Verdict {
    let differences = crate::pairing::Pairing::default().differences(&judge, &subject);
    let mut results = [result(request, Sides { judge, subject }, differences)];
    explain(&mut results, &former());
    results[0].steps[0].verdict
}

fn refusal(causes: &[(&str, &str, &str)]) -> Value {
    let causes: Vec<Value> = causes
        .iter()
        .map(|(field, reason, message)| {
            json!({"field": field, "reason": reason, "message": message})
        })
        .collect();
    json!({"status": 422, "response": {
        "message": "X \"a\" is invalid: [<causes>]", "details": {"causes": causes}}})
}

#[test]
fn releases_are_compared_by_their_minor_version() {
    assert!(is_later("v1.36.3", "v1.33.0+kopf-0.1.0"));
    assert!(!is_later("v1.33.13", "v1.33.0+kopf-0.1.0"));
}

#[test]
fn values_in_errors_may_be_printed_otherwise() {
    let text = |value: &str| Some(json!(format!("Invalid value: {value}: may not be set")));
    let go = "map[string]string{\"a\":\"b\"}";
    assert_eq!(
        verdict("/response/message", text("{\"a\":\"b\"}"), text(go)),
        Verdict::OtherRelease
    );
    let other = Some(json!("Invalid value: 5: must be set"));
    assert_eq!(verdict("/response/code", text("5"), other), Verdict::Different);
    assert_eq!(verdict("/x", text("5"), Some(json!("Required value"))), Verdict::Different);
}

#[test]
fn a_field_that_only_the_later_release_has_is_not_explained() {
    assert_eq!(verdict("/response/spec/new", Some(json!(1)), None), Verdict::Different);
    let place = "/response/metadata/creationTimestamp";
    assert_eq!(verdict(place, None, Some(Value::Null)), Verdict::OtherRelease);
    assert_eq!(verdict(place, None, Some(json!("<time>"))), Verdict::Different);
}

#[test]
fn a_step_that_differs_from_the_former_release_is_not_explained() {
    let difference = Difference {
        pointer: "/response/metadata/creationTimestamp".to_owned(),
        judge: None,
        subject: Some(Value::Null),
    };
    let sides = Sides { judge: Value::Null, subject: Value::Null };
    let mut results = [result("GET /x", sides, vec![difference])];
    let unequal = "## Scripts\n\n| s | 9 |\n\n## s\n\n1. `GET /x`\n";
    explain(&mut results, &Former::parse(unequal));
    assert_eq!(results[0].steps[0].verdict, Verdict::Different);
}

#[test]
fn causes_are_explained_together_or_not_at_all() {
    let path = "PATCH /apis/apps/v1/namespaces/${ns}/daemonsets/d";
    let twice = ("spec.x", "FieldValueInvalid", "Invalid value: -1: no");
    let other = ("spec.y", "FieldValueInvalid", "Invalid value: -1: no");
    let (once, before) = (refusal(&[twice]), refusal(&[twice, twice]));
    assert_eq!(compared(path, once.clone(), before), Verdict::OtherRelease);
    assert_eq!(compared(path, once.clone(), refusal(&[twice, other])), Verdict::Different);
    assert_eq!(compared(path, once, refusal(&[twice, twice, other])), Verdict::Different);
}

#[test]
fn what_only_one_release_refuses_must_be_a_known_cause() {
    let path = "POST /api/v1/namespaces/${ns}/services";
    let message = "Invalid value: \"1a\": a DNS-1035 label must consist of lower case letters";
    let accepted = json!({"status": 201, "response": {"metadata": {"name": "1a"}}});
    let refused = |field| refusal(&[(field, "FieldValueInvalid", message)]);
    assert_eq!(compared(path, accepted.clone(), refused("metadata.name")), Verdict::OtherRelease);
    assert_eq!(compared(path, accepted.clone(), refused("spec.name")), Verdict::Different);
    assert_eq!(compared(path, refused("metadata.name"), accepted), Verdict::Different);
}

#[test]
fn another_status_needs_a_known_change() {
    let answer =
        |status: u64, message: &str| json!({"status": status, "response": {"message": message}});
    let subject = answer(500, "json: cannot unmarshal");
    let same = answer(400, "json: cannot unmarshal");
    assert_eq!(compared("DELETE /x", same.clone(), subject.clone()), Verdict::OtherRelease);
    assert_eq!(compared("GET /x", same, subject.clone()), Verdict::Different);
    assert_eq!(compared("DELETE /x", answer(400, "other"), subject), Verdict::Different);
}

#[test]
fn hashes_of_templates_are_single_words() {
    let place = "/response/status/currentRevision";
    let text = |text: &str| Some(json!(text));
    assert_eq!(verdict(place, text("s-784947b667"), text("s-57d86958df")), Verdict::OtherRelease);
    assert_eq!(verdict(place, text("s-784947b667"), text("t-57d86958df")), Verdict::Different);
    assert_eq!(verdict(place, text("s-784947b667"), text("s-name-of-it")), Verdict::Different);
}
