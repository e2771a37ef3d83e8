use super::*;

fn definition(client_config: &Value) -> Value {
    let mut definition = json!({"spec": {"versions": []}});
    merge::apply(&mut definition, &patch(client_config, "databases.example.com"));
    definition
}

#[test]
fn a_definition_refers_to_its_own_path() {
    let config = json!({"caBundle": "x", "url": "https://host:1"});
    let expected = json!({"spec": {"versions": [], "conversion": {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {
                "caBundle": "x", "url": "https://host:1/convert/databases.example.com",
            },
            "conversionReviewVersions": ["v1"],
        },
    }}});
    assert_eq!(definition(&config), expected);
}

#[test]
fn a_definition_that_refers_to_us_is_unchanged() {
    let url = json!({"caBundle": "x", "url": "https://host:1"});
    let service = json!({"caBundle": "x", "service": {"name": "s", "namespace": "n", "port": 443}});
    let name = "databases.example.com";
    assert!(!is_news(&definition(&url), &patch(&url, name)));
    assert!(!is_news(&definition(&service), &patch(&service, name)));
    assert!(is_news(&definition(&url), &patch(&service, name)));
    assert!(is_news(&json!({"spec": {"conversion": {"strategy": "None"}}}), &patch(&url, name)));
}

#[test]
fn a_service_takes_the_place_of_a_url() {
    let mut definition = definition(&json!({"caBundle": "x", "url": "https://host:1"}));
    let service = json!({"caBundle": "y", "service": {"name": "s"}});
    merge::apply(&mut definition, &patch(&service, "databases.example.com"));
    let config = &definition["spec"]["conversion"]["webhook"]["clientConfig"];
    let path = "/convert/databases.example.com";
    assert_eq!(*config, json!({"caBundle": "y", "service": {"name": "s", "path": path}}));
}
