use super::*;

#[test]
fn parameters_are_decoded() {
    let request = PageRequest::new("/api/x", Some("a=one%20two+three&b=%zz&c="), Value::Null);
    assert_eq!(request.optional("a"), Some("one two three"));
    assert_eq!(request.optional("b"), Some("%zz"));
    assert_eq!(request.optional("c"), None);
}

#[test]
fn names_lead_nowhere_else() {
    for name in ["../secrets", "a/b", "..", "a?b", "a b"] {
        let body = serde_json::json!({"name": name});
        assert!(PageRequest::new("/", None, body).name("name").is_err(), "{name}");
    }
    let body = serde_json::json!({"name": "system:node.a-1"});
    assert!(PageRequest::new("/", None, body).name("name").is_ok());
}
