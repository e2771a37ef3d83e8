//! Runtime classes of pods: they must exist, and they set the overhead and scheduling of pods.

use serde_json::{Value, json};

use crate::fields::{at, items, set, text};
use crate::store::Snapshot;

/// Fills in the settings of a new pod's class; fails if the class does not exist.
pub(super) fn fill(snapshot: &Snapshot, pod: &mut Value) -> Result<(), String> {
    let name = text(pod, &["spec", "runtimeClassName"]).to_owned();
    if name.is_empty() {
        return Ok(());
    }
    let Some(class) = snapshot.get("runtimeclasses.node.k8s.io", "", &name) else {
        return Err(format!("pod rejected: RuntimeClass {name:?} not found"));
    };
    let class = class.content();
    if let Some(overhead) = at(class, &["overhead", "podFixed"]) {
        set(pod, &["spec", "overhead"], overhead.clone());
    }
    if let Some(Value::Object(pairs)) = at(class, &["scheduling", "nodeSelector"]) {
        for (key, value) in pairs {
            set(pod, &["spec", "nodeSelector", key], value.clone());
        }
    }
    let tolerations = items(class, &["scheduling", "tolerations"]);
    if !tolerations.is_empty() {
        let mut all = items(pod, &["spec", "tolerations"]).to_vec();
        all.extend(tolerations.iter().cloned());
        set(pod, &["spec", "tolerations"], json!(all));
    }
    Ok(())
}
