//! AppArmor profiles of new pods: the annotations of old clients and the fields of new ones are
//! kept equal.
//!
//! Pure. Follows `applyAppArmorVersionSkew` of upstream.

use serde_json::{Value, json};

use crate::fields::{items_mut, text, text_at};
use crate::rules::is_valid_app_armor;

const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Copies annotations to fields and fields to annotations; returns the warnings about annotations.
pub(crate) fn synchronise(pod: &mut Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if text_at(pod, "/spec/os/name") == "windows" {
        return warnings;
    }
    let of_pod = pod["spec"]["securityContext"]["appArmorProfile"].clone();
    let annotations = pod["metadata"]["annotations"].clone();
    let mut added = Vec::new();
    for field in LISTS {
        if pod["spec"].get(field).is_none() {
            continue;
        }
        for container in items_mut(&mut pod["spec"], field) {
            let key = format!("{ANNOTATION}{}", text(container, "name"));
            let own = container["securityContext"]["appArmorProfile"].clone();
            match annotations.get(&key).and_then(Value::as_str) {
                None => {
                    let profile = if own.is_null() { &of_pod } else { &own };
                    added.extend(annotation_of(profile).map(|value| (key, value)));
                }
                Some(annotation) if own.is_null() => {
                    let profile = profile_of(annotation);
                    let is_news = profile.as_ref().is_some_and(|profile| *profile != of_pod);
                    if profile.is_none() || is_news {
                        warnings.push(format!(
                            "metadata.annotations[{key}]: deprecated since v1.30; use the \
                             \"appArmorProfile\" field instead"
                        ));
                    }
                    if let Some(profile) = profile.filter(|_| is_news) {
                        container["securityContext"]["appArmorProfile"] = profile;
                    }
                }
                Some(_) => {}
            }
        }
    }
    for (key, value) in added {
        pod["metadata"]["annotations"][key] = value.into();
    }
    warnings
}

/// The annotation for a profile, unless the profile is incomplete.
fn annotation_of(profile: &Value) -> Option<String> {
    match text(profile, "type") {
        "Unconfined" => Some("unconfined".to_owned()),
        "RuntimeDefault" => Some("runtime/default".to_owned()),
        "Localhost" => profile["localhostProfile"].as_str().map(|file| format!("localhost/{file}")),
        _ => None,
    }
}

/// The profile for an annotation, unless it would be invalid.
fn profile_of(annotation: &str) -> Option<Value> {
    let profile = match annotation {
        "unconfined" => json!({ "type": "Unconfined" }),
        "runtime/default" => json!({ "type": "RuntimeDefault" }),
        other => {
            let file = other.strip_prefix("localhost/").filter(|file| !file.is_empty())?;
            json!({ "type": "Localhost", "localhostProfile": file })
        }
    };
    is_valid_app_armor(&profile).then_some(profile)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::synchronise;

    #[test]
    fn annotations_become_fields_with_a_warning() {
        let key = "container.apparmor.security.beta.kubernetes.io/c";
        let mut pod = json!({"metadata": {"annotations": {key: "localhost/x"}},
            "spec": {"containers": [{"name": "c"}]}});
        assert_eq!(synchronise(&mut pod).len(), 1);
        let profile = &pod["spec"]["containers"][0]["securityContext"]["appArmorProfile"];
        assert_eq!(*profile, json!({"type": "Localhost", "localhostProfile": "x"}));
        assert!(synchronise(&mut pod).is_empty());
    }

    #[test]
    fn fields_become_annotations() {
        let key = "container.apparmor.security.beta.kubernetes.io/c";
        let profile = json!({"appArmorProfile": {"type": "RuntimeDefault"}});
        let mut pod = json!({"metadata": {},
            "spec": {"securityContext": profile, "containers": [{"name": "c"}]}});
        assert!(synchronise(&mut pod).is_empty());
        assert_eq!(pod["metadata"]["annotations"][key], "runtime/default");
        assert!(pod["spec"]["containers"][0].get("securityContext").is_none());
    }

    #[test]
    fn odd_annotations_only_cause_a_warning() {
        let key = "container.apparmor.security.beta.kubernetes.io/c";
        let mut pod = json!({"metadata": {"annotations": {key: "odd"}},
            "spec": {"containers": [{"name": "c"}]}});
        let before = pod.clone();
        assert_eq!(synchronise(&mut pod).len(), 1);
        assert_eq!(pod, before);
    }
}
