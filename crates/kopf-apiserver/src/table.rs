//! Objects as rows: what `kubectl get` prints.
//!
//! Pure. The encoder calls it when a client asks for a `Table`.

use serde_json::{Value, json};

use crate::resource::ResourceInfo;

/// The `columnDefinitions` of a resource.
pub(crate) fn columns(_resource: &ResourceInfo) -> Value {
    json!([
        {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
        {"name": "Age", "type": "string", "format": "", "description": "", "priority": 0},
    ])
}

/// The `cells` of one object; `now` is for ages.
pub(crate) fn cells(_resource: &ResourceInfo, object: &Value, _now: jiff::Timestamp) -> Vec<Value> {
    vec![object["metadata"]["name"].clone(), object["metadata"]["creationTimestamp"].clone()]
}
