//! Rules for conversion between versions.

use serde_json::Value;

use super::{list, text};
use crate::go_print::quoted;
use crate::{FieldError, FieldErrorReason};

pub(super) fn check(conversion: &Value, errors: &mut Vec<FieldError>) {
    if !conversion.is_object() {
        return;
    }
    let webhook = conversion.get("webhook").filter(|webhook| !webhook.is_null());
    let client = webhook.and_then(|webhook| webhook.get("clientConfig"));
    let versions = webhook.map_or(&[][..], |webhook| list(webhook, "conversionReviewVersions"));
    // The internal form, which determines the paths, does not have the `webhook` level.
    let client_field = "spec.conversion.webhookClientConfig";
    let versions_field = "spec.conversion.conversionReviewVersions";
    match text(conversion, "strategy") {
        "" => errors.push(FieldError::required("spec.conversion.strategy", "")),
        "Webhook" => {
            check_client(client, client_field, errors);
            check_versions(versions, versions_field, errors);
        }
        strategy => {
            if strategy != "None" {
                let field = "spec.conversion.strategy";
                let value = &conversion["strategy"];
                errors.push(FieldError::not_supported(field, value, &["None", "Webhook"]));
            }
            let detail = "should not be set when strategy is not set to Webhook";
            if client.is_some() {
                errors.push(FieldError::forbidden(client_field, detail));
            }
            if !versions.is_empty() {
                errors.push(FieldError::forbidden(versions_field, detail));
            }
        }
    }
}

fn check_client(client: Option<&Value>, field: &str, errors: &mut Vec<FieldError>) {
    let Some(client) = client else {
        let detail = "required when strategy is set to Webhook";
        errors.push(FieldError::required(field, detail));
        return;
    };
    let is_set = |key: &str| client.get(key).is_some_and(|value| !value.is_null());
    if is_set("url") == is_set("service") {
        let detail = "exactly one of url or service is required";
        errors.push(FieldError::required(field, detail));
    } else if is_set("url") && !text(client, "url").starts_with("https://") {
        let scheme = text(client, "url").split("://").next().unwrap_or_default();
        let detail = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
        errors.push(FieldError::invalid(format!("{field}.url"), &scheme.into(), detail));
    } else if is_set("service") {
        // Upstream swaps the two; this reproduces the recorded behaviour.
        for (key, reported) in [("name", "namespace"), ("namespace", "name")] {
            if text(&client["service"], key).is_empty() {
                let detail = format!("service {reported} is required");
                errors.push(FieldError::required(format!("{field}.service.{reported}"), &detail));
            }
        }
    }
}

fn check_versions(versions: &[Value], field: &str, errors: &mut Vec<FieldError>) {
    if versions.is_empty() {
        errors.push(FieldError::required(field, ""));
        return;
    }
    for (index, version) in versions.iter().enumerate() {
        if versions[..index].contains(version) {
            let field = format!("{field}[{index}]");
            errors.push(FieldError::invalid(field, version, "duplicate version"));
        }
    }
    if !versions.iter().any(|version| version == "v1" || version == "v1beta1") {
        let names: Vec<String> =
            versions.iter().map(|name| quoted(name.as_str().unwrap_or_default())).collect();
        let names = names.join(", ");
        let message =
            format!("Invalid value: []string{{{names}}}: must include at least one of v1, v1beta1");
        errors.push(FieldError::new(FieldErrorReason::Invalid, field, message));
    }
}
