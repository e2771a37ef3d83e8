//! JSON patches of managed fields: which are tracked, cleared, tested and moved.

use kopf_apiserver::{LocalClient, Patch, Server, Target};
use serde_json::{Value, json};

async fn world() -> LocalClient {
    let client = Server::builder().controllers(false).build().local();
    let map = json!({"metadata": {"name": "a"}, "data": {"x": "1"}});
    client.create("configmaps", "default", map).await.expect("a new map");
    client
}

async fn patch(client: &LocalClient, steps: Value) -> Result<Value, u16> {
    let target = Target::new("configmaps", "default", "a");
    let patched = client.patch(target, Patch::Json(steps)).await;
    patched.map(|object| object.value().clone()).map_err(|error| error.code)
}

/// The fields that the writer owns according to the managed fields.
fn owned(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().expect("a list");
    assert_eq!(entries.len(), 1, "one writer only: {entries:?}");
    entries[0]["fieldsV1"].clone()
}

#[tokio::test]
async fn fields_are_tracked_wherever_a_patch_leads() {
    let client = world().await;
    let held = json!([{"op": "add", "path": "/metadata/finalizers", "value": ["t.io/a"]}]);
    let object = patch(&client, held).await.expect("a patched map");
    let finalizers = json!({".": {}, "v:\"t.io/a\"": {}});
    let expected =
        json!({"f:data": {".": {}, "f:x": {}}, "f:metadata": {"f:finalizers": finalizers}});
    assert_eq!(owned(&object), expected);
    // The same over the whole metadata, including managed fields.
    let copied = json!([{"op": "copy", "from": "/metadata/finalizers", "path": "/metadata/managedFields"},
                        {"op": "remove", "path": "/metadata/managedFields"},
                        {"op": "add", "path": "/data/y", "value": "2"}]);
    let object = patch(&client, copied).await.expect("a patched map");
    assert_eq!(object["data"], json!({"x": "1", "y": "2"}));
}

#[tokio::test]
async fn managed_fields_can_be_tested_and_cleared() {
    let client = world().await;
    let manager = "/metadata/managedFields/0/manager";
    let wrong = json!([{"op": "test", "path": manager, "value": "nobody"}]);
    assert_eq!(patch(&client, wrong).await, Err(422));
    let absent = json!([{"op": "test", "path": "/metadata/managedFields", "value": null}]);
    assert_eq!(patch(&client, absent).await, Err(422), "they are there");
    let whole = json!([{"op": "test", "path": "/metadata", "value": {"name": "a"}}]);
    assert_eq!(patch(&client, whole).await, Err(422), "there is more in metadata");
    let cleared = json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]);
    let object = patch(&client, cleared).await.expect("a patched map");
    assert_eq!(object["metadata"].get("managedFields"), None);
}

#[tokio::test]
async fn steps_that_lead_nowhere_are_refused() {
    let client = world().await;
    for path in ["", "metadata", "/nowhere/at/all"] {
        let steps = json!([{"op": "remove", "path": path}]);
        assert_eq!(patch(&client, steps).await, Err(422), "{path:?}");
    }
}
