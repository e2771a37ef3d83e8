//! Tests for selectors.

use serde_json::json;

use super::{FieldSelector, LabelSelector};

fn selects(text: &str) -> bool {
    let labels = json!({"app": "web", "tier": "1", "env": ""});
    LabelSelector::parse(text).unwrap().matches(&labels)
}

#[test]
fn every_label_operator_works() {
    for text in
        ["app=web", "app==web", "app!=db", "app in (db, web)", "app notin (db)", "app", "!x"]
    {
        assert!(selects(text), "{text}");
    }
    for text in ["tier>0", "tier<2", "env=", "env in ()", "x notin (y)", "x!=y", "app,tier=1"] {
        assert!(selects(text), "{text}");
    }
    for text in ["app=db", "x", "!app", "tier>1", "app in (db)", "app,x", "x=y"] {
        assert!(!selects(text), "{text}");
    }
}

#[test]
fn label_errors_are_worded_like_upstream() {
    assert_eq!(
        LabelSelector::parse("a b c").unwrap_err(),
        "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"
    );
}

#[test]
fn field_selectors_compare_texts() {
    let object = json!({"metadata": {"name": "a"}, "spec": {"hostNetwork": true}});
    let check = |text: &str| FieldSelector::parse(text).unwrap().matches(&object);
    assert!(check("metadata.name=a,spec.hostNetwork=true"));
    assert!(check("metadata.name!=b,status.phase="));
    assert!(!check("metadata.name==b"));
    assert_eq!(
        FieldSelector::parse("metadata.name").unwrap_err(),
        "invalid selector: 'metadata.name'; can't understand 'metadata.name'"
    );
}

#[test]
fn values_of_field_selectors_are_escaped() {
    let object = json!({"metadata": {"name": "a,b=c"}});
    assert!(FieldSelector::parse("metadata.name=a\\,b\\=c").unwrap().matches(&object));
    for (text, problem) in [
        ("a=b=c", "unescaped character in value: 61"),
        ("a=\\x", "invalid escape sequence: \\x"),
        ("a=b\\", "invalid escape sequence: \\"),
    ] {
        let problem = format!("invalid field selector: {problem}");
        assert_eq!(FieldSelector::parse(text).unwrap_err(), problem);
    }
}
