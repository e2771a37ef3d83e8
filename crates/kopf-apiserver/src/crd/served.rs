//! The resources that established CRDs serve.

use std::sync::Arc;

use serde_json::Value;

use super::TABLE;
use crate::Stored;
use crate::registry::{Registry, compare_versions};
use crate::resource::{CustomResource, ResourceInfo, ScalePaths, Subresource};
use crate::schema;
use crate::server::Inner;

/// Rebuilds the registry from the CRDs in the store.
pub(crate) fn refresh(inner: &Inner) {
    let mut cache = inner.custom_resources.lock();
    // Only under the lock: whoever refreshes last must have seen the newest CRDs.
    let snapshot = inner.store.snapshot();
    let mut resources = Vec::new();
    let mut kept = std::collections::HashMap::new();
    for (_, crd) in snapshot.list(TABLE, "") {
        let compiled = match cache.remove(crd.uid()) {
            Some((version, compiled)) if version == crd.resource_version() => compiled,
            _ => resources_of(&crd),
        };
        resources.extend(compiled.iter().cloned());
        kept.insert(crd.uid().to_owned(), (crd.resource_version(), compiled));
    }
    let had_none = cache.is_empty() && inner.registry.load().revision() == 0;
    *cache = kept;
    if had_none && resources.is_empty() {
        return;
    }
    let revision = snapshot.resource_version();
    inner.registry.store(Arc::new(Registry::with_custom(resources, revision)));
}

/// One entry per served version of an established CRD.
fn resources_of(crd: &Stored) -> Vec<Arc<ResourceInfo>> {
    let object = crd.content();
    if !has_condition(object, "Established") {
        return Vec::new();
    }
    let versions = object["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut served: Vec<&Value> =
        versions.iter().filter(|version| version["served"] == true).collect();
    served.sort_by(|one, two| compare_versions(text(&one["name"]), text(&two["name"])).reverse());
    served.into_iter().map(|version| Arc::new(resource(object, version))).collect()
}

/// Whether a condition of the CRD is true.
pub(super) fn has_condition(crd: &Value, kind: &str) -> bool {
    crd["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == kind && condition["status"] == "True")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn resource(crd: &Value, version: &Value) -> ResourceInfo {
    let spec = &crd["spec"];
    let names = &crd["status"]["acceptedNames"];
    let group = text(&spec["group"]);
    let plural = text(&names["plural"]);
    let storage = spec["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true)
        .map_or("", |version| text(&version["name"]));
    let terminating = crd["metadata"]["deletionTimestamp"].is_string();
    ResourceInfo {
        group: group.to_owned(),
        version: text(&version["name"]).to_owned(),
        resource: plural.to_owned(),
        singular: text(&names["singular"]).to_owned(),
        kind: text(&names["kind"]).to_owned(),
        list_kind: text(&names["listKind"]).to_owned(),
        namespaced: spec["scope"] == "Namespaced",
        verbs: ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
            .map(str::to_owned)
            .to_vec(),
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        subresources: subresources(version, text(&names["kind"])),
        table: format!("{plural}.{group}").into(),
        storage_version: storage.to_owned(),
        custom: Some(Arc::new(custom(crd, version, terminating))),
        schema: schema::custom(&version["schema"]["openAPIV3Schema"]),
    }
}

fn subresources(version: &Value, kind: &str) -> Vec<Subresource> {
    let verbs = || ["get", "patch", "update"].map(str::to_owned).to_vec();
    let mut subresources = Vec::new();
    if !version["subresources"]["status"].is_null() {
        subresources.push(Subresource {
            name: "status".to_owned(),
            group: String::new(),
            version: String::new(),
            kind: kind.to_owned(),
            verbs: verbs(),
        });
    }
    if !version["subresources"]["scale"].is_null() {
        subresources.push(Subresource {
            name: "scale".to_owned(),
            group: "autoscaling".to_owned(),
            version: "v1".to_owned(),
            kind: "Scale".to_owned(),
            verbs: verbs(),
        });
    }
    subresources
}

fn custom(crd: &Value, version: &Value, terminating: bool) -> CustomResource {
    let spec = &crd["spec"];
    let scale = &version["subresources"]["scale"];
    let deprecated = version["deprecated"] == true;
    let gvk = || {
        format!(
            "{}/{} {}",
            text(&spec["group"]),
            text(&version["name"]),
            text(&spec["names"]["kind"])
        )
    };
    CustomResource {
        crd_name: text(&crd["metadata"]["name"]).to_owned(),
        terminating,
        scale: scale.is_object().then(|| ScalePaths {
            spec_replicas: text(&scale["specReplicasPath"]).to_owned(),
            status_replicas: text(&scale["statusReplicasPath"]).to_owned(),
            label_selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
        }),
        selectable_fields: version["selectableFields"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|field| field["jsonPath"].as_str())
            .map(str::to_owned)
            .collect(),
        printer_columns: version["additionalPrinterColumns"]
            .as_array()
            .cloned()
            .unwrap_or_default(),
        deprecation_warning: deprecated.then(|| {
            version["deprecationWarning"]
                .as_str()
                .map_or_else(|| format!("{} is deprecated", gvk()), str::to_owned)
        }),
        versions: spec["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|version| text(&version["name"]).to_owned())
            .collect(),
        conversion_webhook: (spec["conversion"]["strategy"] == "Webhook")
            .then(|| spec["conversion"]["webhook"].clone()),
        preserve_unknown_fields: spec["preserveUnknownFields"] == true,
    }
}

#[cfg(test)]
mod tests;
