//! The flow schemas and priority levels of every cluster.

use kopf_apiserver::{LocalClient, Patch, Server, Target};
use serde_json::json;

const SCHEMAS: &str = "flowschemas.flowcontrol.apiserver.k8s.io";
const LEVELS: &str = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io";

fn client() -> LocalClient {
    Server::builder().controllers(false).build().local()
}

#[tokio::test]
async fn every_schema_reports_that_its_level_exists() {
    let client = client();
    let levels = client.list(LEVELS, "").await;
    let schemas = client.list(SCHEMAS, "").await;
    assert_eq!((levels.len(), schemas.len()), (8, 13));
    for schema in schemas {
        let object = schema.value();
        let level = object["spec"]["priorityLevelConfiguration"]["name"].as_str();
        assert!(levels.iter().any(|known| Some(known.name()) == level), "{level:?}");
        let condition = &object["status"]["conditions"][0];
        assert_eq!(
            (&condition["type"], &condition["status"]),
            (&json!("Dangling"), &json!("False"))
        );
    }
}

#[tokio::test]
async fn mandatory_objects_cannot_be_changed() {
    let client = client();
    let cases = [
        (SCHEMAS, "exempt", json!({"matchingPrecedence": 5}), "spec of 'exempt' must equal"),
        (SCHEMAS, "catch-all", json!({"matchingPrecedence": 5}), "spec of 'catch-all' must equal"),
        (
            LEVELS,
            "catch-all",
            json!({"limited": {"nominalConcurrencyShares": 6}}),
            "spec of 'catch-all' must equal the fixed value",
        ),
        (
            LEVELS,
            "exempt",
            json!({"type": "Limited"}),
            "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value",
        ),
    ];
    for (table, name, spec, expected) in cases {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let refused = client.patch(Target::new(table, "", name), patch).await.expect_err("refused");
        assert!(refused.to_string().contains(expected), "{refused}");
    }
    let free = [
        (SCHEMAS, "probes", json!({"matchingPrecedence": 3})),
        (LEVELS, "exempt", json!({"exempt": {"nominalConcurrencyShares": 7}})),
    ];
    for (table, name, spec) in free {
        let patch = Patch::Merge(json!({ "spec": spec }));
        assert!(client.patch(Target::new(table, "", name), patch).await.is_ok(), "{name}");
    }
}
