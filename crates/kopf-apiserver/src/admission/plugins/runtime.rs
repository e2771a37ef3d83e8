//! Runtime classes of pods: they must exist, and they set the overhead and scheduling of pods.

use serde_json::{Value, json};

use crate::fields::{at, items, set, text};
use crate::store::Snapshot;

/// Fills in the settings of a new pod's class; fails if the class does not exist, or if the pod asks
/// for something else.
pub(super) fn fill(snapshot: &Snapshot, pod: &mut Value) -> Result<(), String> {
    let name = text(pod, &["spec", "runtimeClassName"]).to_owned();
    let own = at(pod, &["spec", "overhead"]).cloned().unwrap_or_default();
    let has_own = own.as_object().is_some_and(|own| !own.is_empty());
    let other =
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
    if name.is_empty() {
        return if has_own { Err(other.to_owned()) } else { Ok(()) };
    }
    let Some(class) = snapshot.get("runtimeclasses.node.k8s.io", "", &name) else {
        return Err(format!("pod rejected: RuntimeClass {name:?} not found"));
    };
    let class = class.content();
    match at(class, &["overhead", "podFixed"]) {
        Some(overhead) if has_own && *overhead != own => {
            let problem = "Pod's Overhead doesn't match RuntimeClass's defined Overhead";
            return Err(format!("pod rejected: {problem}"));
        }
        Some(overhead) => set(pod, &["spec", "overhead"], overhead.clone()),
        None if has_own => return Err(other.to_owned()),
        None => {}
    }
    if let Some(Value::Object(pairs)) = at(class, &["scheduling", "nodeSelector"]) {
        for (key, value) in pairs {
            let wanted = value.as_str().unwrap_or_default();
            let given = at(pod, &["spec", "nodeSelector", key]).and_then(Value::as_str);
            if let Some(given) = given.filter(|given| *given != wanted) {
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; \
                     pod.spec.nodeSelector[{key}] = {given}"
                ));
            }
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
