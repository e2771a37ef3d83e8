//! The webhook configurations in the cluster, kept in sync with the handlers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kopf_client::{Failure, PatchContent, RequestError, Target, Urgency};
use kopf_core::endpoint::addressed;
use kopf_core::filter::MetaFilter;
use kopf_core::groups;
use kopf_core::handler::{Handler, HandlerKind};
use kopf_model::Resource;
use serde_json::{Value, json};

use super::review::options;
use super::{Admission, AdmissionError};

/// How long the cluster waits for a response, in seconds.
const TIMEOUT_SECONDS: u32 = 30;

/// The webhooks as last written, by the plural of the configuration.
pub(super) type Written = BTreeMap<String, Vec<Value>>;

fn not_configured(name: &str, error: RequestError) -> AdmissionError {
    AdmissionError::Configure { name: name.to_owned(), source: Box::new(error) }
}

/// Ensures that the configurations with handlers exist.
pub(super) async fn create(admission: &Admission, name: &str) -> Result<(), AdmissionError> {
    for resource in configurations().into_iter().filter(|it| has_handlers(admission, it)) {
        let body = json!({"metadata": {"name": name}}).to_string();
        match admission.cluster.create(&resource, None, body.into()).await {
            Err(error) if error.failure != Failure::Conflict => {
                return Err(not_configured(name, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether there are handlers for a configuration: validating or mutating ones.
fn has_handlers(admission: &Admission, configuration: &Resource) -> bool {
    admission.handlers.iter().any(|handler| is_of(configuration, handler))
}

/// Configures the cluster to call us, for validating and mutating handlers, where the configuration
/// has changed.
pub(super) async fn configure(
    admission: &Admission,
    name: &str,
    client_config: &Value,
) -> Result<(), AdmissionError> {
    for resource in configurations() {
        let webhooks = webhooks(admission, &resource, name, client_config, |_| true);
        if admission.written.lock().get(&resource.plural) == Some(&webhooks) {
            continue;
        }
        let write = write(admission, &resource, name, webhooks.clone());
        if has_handlers(admission, &resource) {
            tracing::info!("Reconfiguring the {} webhook {name}.", kind_word(&resource));
            write.await.map_err(|error| not_configured(name, error))?;
        } else if let Err(error) = write.await {
            // This would only empty what an earlier version of the operator may have left.
            let is_fine = matches!(error.failure, Failure::NotFound | Failure::Forbidden);
            if !is_fine {
                return Err(not_configured(name, error));
            }
        }
        admission.written.lock().insert(resource.plural, webhooks);
    }
    Ok(())
}

/// Keeps only persistent webhooks.
pub(super) async fn deconfigure(admission: &Admission, name: &str) {
    for resource in configurations().into_iter().filter(|it| has_handlers(admission, it)) {
        tracing::info!("Cleaning up the admission webhook {name}.");
        let target = Target { resource: &resource, namespace: None, name, subresource: None };
        let kept = match admission.cluster.get(target).await {
            Ok(object) => {
                let webhooks = object.value().get("webhooks").and_then(Value::as_array);
                kept(admission, webhooks.map(Vec::as_slice).unwrap_or_default(), name)
            }
            // Operators need not have the right to read it; they know what they wrote.
            Err(error) => match admission.written.lock().get(&resource.plural) {
                Some(written) => kept(admission, written, name),
                None => {
                    tracing::warn!(%error, "could not remove our webhooks from the configuration; leaving it unchanged");
                    continue;
                }
            },
        };
        if let Err(error) = write(admission, &resource, name, kept).await {
            tracing::warn!(%error, "could not clean up the webhook configuration");
        }
    }
}

/// The persistent webhooks.
fn kept(admission: &Admission, webhooks: &[Value], name: &str) -> Vec<Value> {
    let is_persistent = |handler: &&Arc<Handler>| options(handler).is_some_and(|it| it.persistent);
    let names: BTreeSet<String> = admission
        .handlers
        .iter()
        .filter(is_persistent)
        .map(|handler| webhook_name(&handler.id, name))
        .collect();
    let is_kept = |webhook: &&Value| {
        webhook.get("name").and_then(Value::as_str).is_some_and(|it| names.contains(it))
    };
    webhooks.iter().filter(is_kept).cloned().collect()
}

async fn write(
    admission: &Admission,
    resource: &Resource,
    name: &str,
    webhooks: Vec<Value>,
) -> Result<(), RequestError> {
    let target = Target { resource, namespace: None, name, subresource: None };
    let content = PatchContent::Merge(json!({"webhooks": webhooks}).to_string().into());
    admission.cluster.patch(target, content, Urgency::Urgent).await.map(drop)
}

fn webhooks(
    admission: &Admission,
    configuration: &Resource,
    name: &str,
    client_config: &Value,
    wanted: impl Fn(&Handler) -> bool,
) -> Vec<Value> {
    admission
        .handlers
        .iter()
        .filter(|it| is_of(configuration, it) && wanted(it))
        .filter_map(|handler| webhook(admission, handler, name, client_config))
        .collect()
}

fn webhook(
    admission: &Admission,
    handler: &Handler,
    name: &str,
    client_config: &Value,
) -> Option<Value> {
    let options = options(handler)?;
    let resources = admission.resources.read();
    let rules: Vec<Value> = resources
        .values()
        .filter(|resource| handler.is_for(resource))
        .map(|resource| {
            let plural = match &options.subresource {
                Some(subresource) => format!("{}/{subresource}", resource.plural),
                None => resource.plural.clone(),
            };
            let operations = match options.operations.as_slice() {
                [] => vec!["*".to_owned()],
                some => some.to_vec(),
            };
            json!({
                "apiGroups": [resource.group],
                "apiVersions": [resource.version],
                "resources": [plural],
                "operations": operations,
                "scope": "*",
            })
        })
        .collect();
    let is_builtin =
        |rule: &Value| rule["apiGroups"][0].as_str().is_some_and(|group| !groups::is_custom(group));
    let has_builtin = rules.iter().any(is_builtin);
    let is_exempting = admission.runtime.context.settings.read().admission.exempt_own_namespace;
    Some(json!({
        "name": webhook_name(&handler.id, name),
        "sideEffects": if options.side_effects { "NoneOnDryRun" } else { "None" },
        "failurePolicy": if options.ignore_failures { "Ignore" } else { "Fail" },
        "matchPolicy": "Equivalent",
        "rules": rules,
        "objectSelector": object_selector(handler),
        "namespaceSelector": namespace_selector(client_config, is_exempting && has_builtin),
        "clientConfig": addressed(client_config, &handler.id),
        "timeoutSeconds": TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1", "v1beta1"],
    }))
}

/// Whether a handler belongs to a configuration.
fn is_of(configuration: &Resource, handler: &Handler) -> bool {
    let is_mutating = configuration.kind.starts_with("Mutating");
    matches!(handler.kind, HandlerKind::Mutate(_)) == is_mutating
}

fn configurations() -> [Resource; 2] {
    ["validating", "mutating"].map(|word| {
        let capital = word[..1].to_uppercase() + &word[1..];
        Resource::cluster_wide(
            "admissionregistration.k8s.io",
            &format!("{word}webhookconfigurations"),
            &format!("{capital}WebhookConfiguration"),
        )
    })
}

fn kind_word(resource: &Resource) -> &'static str {
    if resource.kind.starts_with("Mutating") { "mutating" } else { "validating" }
}

/// Kopf's names: slashes become dots, underscores become dashes, the rest hexadecimal digits.
fn webhook_name(id: &str, configuration: &str) -> String {
    let mut name = String::new();
    for letter in id.chars() {
        match letter {
            '/' => name.push('.'),
            '_' => name.push('-'),
            '.' | '-' => name.push(letter),
            letter if letter.is_ascii_alphanumeric() => name.push(letter),
            other => {
                let mut buffer = [0; 4];
                for byte in other.encode_utf8(&mut buffer).bytes() {
                    name.push_str(&format!("{byte:02x}"));
                }
            }
        }
    }
    format!("{name}.{configuration}")
}

/// Excludes the operator's own namespace if its start could be blocked by webhooks for pods, leases
/// and the like, which have no response while it is down.
fn namespace_selector(client_config: &Value, is_exempt: bool) -> Value {
    match client_config["service"]["namespace"].as_str().filter(|_| is_exempt) {
        Some(own) => json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [own]},
        ]}),
        None => Value::Null,
    }
}

fn object_selector(handler: &Handler) -> Value {
    let expressions: Vec<Value> = handler
        .filters
        .labels
        .iter()
        .filter_map(|(key, filter)| match filter {
            MetaFilter::Equals(value) => {
                Some(json!({"key": key, "operator": "In", "values": [value]}))
            }
            MetaFilter::Present => Some(json!({"key": key, "operator": "Exists"})),
            MetaFilter::Absent => Some(json!({"key": key, "operator": "DoesNotExist"})),
            MetaFilter::Matches(_) => None,
        })
        .collect();
    if expressions.is_empty() { Value::Null } else { json!({"matchExpressions": expressions}) }
}

#[cfg(test)]
mod tests;
