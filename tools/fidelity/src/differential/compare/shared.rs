//! Responses about the whole server: what belongs to other scripts, which run at the same time.
//!
//! Pure. Removes the groups of other scripts, and the hashes of documents, which are keys for
//! caches and depend on how a server writes the document.

use serde_json::Value;

const DOMAIN: &str = ".kopf.dev";
const HASH: &str = "?hash=";

/// A response without the groups of other scripts and without hashes.
pub(super) fn own_part(response: &Value, namespace: &str) -> Value {
    match response {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !is_foreign(name, namespace))
            .map(|(name, value)| (name.clone(), own_part(value, namespace)))
            .collect(),
        Value::Array(items) => items
            .iter()
            .filter(|item| {
                let names = [&item["name"], &item["metadata"]["name"]];
                !names.iter().any(|name| is_foreign(name.as_str().unwrap_or_default(), namespace))
            })
            .map(|item| own_part(item, namespace))
            .collect(),
        Value::String(text) if text.starts_with('/') => match text.split_once(HASH) {
            Some((path, _)) => Value::String(format!("{path}{HASH}<hash>")),
            None => response.clone(),
        },
        other => other.clone(),
    }
}

/// Whether a name contains the group of another script.
fn is_foreign(name: &str, namespace: &str) -> bool {
    let Some((before, _)) = name.split_once(DOMAIN) else { return false };
    let group = before.rsplit(['.', '/']).next().unwrap_or_default();
    let shape: String =
        group.chars().map(|it| if it.is_ascii_digit() { '0' } else { it }).collect();
    matches!(shape.as_str(), "d00000000a000" | "d00000000b000") && group != namespace
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::own_part;

    #[test]
    fn groups_of_other_scripts_do_not_count() {
        let response = json!({
            "groups": [{"name": "apps"}, {"name": "d12345678a001.kopf.dev"},
                {"name": "d12345678a002.kopf.dev"}],
            "paths": {"apis/d12345678a002.kopf.dev/v1": {}, "apis/kopf.dev": {}},
        });
        let own = json!({
            "groups": [{"name": "apps"}, {"name": "d12345678a001.kopf.dev"}],
            "paths": {"apis/kopf.dev": {}},
        });
        assert_eq!(own_part(&response, "d12345678a001"), own);
    }

    #[test]
    fn hashes_of_documents_do_not_count() {
        let url = json!({"serverRelativeURL": "/openapi/v3/api?hash=AC35"});
        assert_eq!(
            own_part(&url, "n"),
            json!({"serverRelativeURL": "/openapi/v3/api?hash=<hash>"})
        );
    }
}
