//! Comparisons of Go structs, recorded from a real 1.33 server.

use serde_json::Value;

use super::difference;

/// A line with `old` starts a group; the others have a JSON patch of it and what the server printed.
#[test]
fn changes_are_shown_as_recorded() {
    let (mut go_type, mut old) = (String::new(), Value::Null);
    let mut count = 0;
    for line in include_str!("recorded.jsonl").lines() {
        let line: Value = serde_json::from_str(line).expect("a recorded line is JSON");
        if let Some(start) = line.get("old") {
            go_type = line["type"].as_str().unwrap_or_default().to_owned();
            old = start.clone();
            continue;
        }
        let mut new = old.clone();
        kopf_apimachinery::patch::json::apply(&mut new, &line["patch"]).expect("the patch fits");
        let shown = difference(&go_type, &old, &with_defaults(new));
        assert_eq!(shown, line["text"].as_str().unwrap_or_default(), "{}", line["patch"]);
        count += 1;
    }
    assert!(count > 25, "{count} comparisons");
}

/// What the server adds to the parts that patches replace.
fn with_defaults(mut spec: Value) -> Value {
    let containers = spec.get_mut("containers").and_then(Value::as_array_mut);
    for container in containers.into_iter().flatten() {
        if let Some(probe) = container.get_mut("readinessProbe") {
            for (field, value) in [
                ("timeoutSeconds", 1),
                ("periodSeconds", 10),
                ("successThreshold", 1),
                ("failureThreshold", 3),
            ] {
                probe[field] = value.into();
            }
        }
    }
    let volumes = spec.get_mut("volumes").and_then(Value::as_array_mut);
    for volume in volumes.into_iter().flatten() {
        if volume["secret"].is_object() {
            volume["secret"]["defaultMode"] = 420.into();
        }
    }
    spec
}

#[test]
fn equal_values_have_no_difference() {
    let spec =
        serde_json::json!({"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]});
    assert_eq!(difference("core.PodSpec", &spec, &spec), "");
}
