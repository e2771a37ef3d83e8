//! The resources that established CRDs serve.

use std::sync::Arc;

use serde_json::Value;

use super::TABLE;
use crate::Stored;
use crate::registry::{self, Registry, compare_versions};
use crate::resource::{CustomResource, ResourceInfo, ScalePaths, Subresource, Undefaulted};
use crate::schema;
use crate::state::Inner;

/// Rebuilds the registry from the CRDs in the store.
pub(crate) fn refresh(inner: &Inner) {
    let mut cache = inner.custom_resources.lock();
    // Only under the lock: the last refresh must see the newest CRDs.
    let snapshot = inner.store.snapshot();
    let mut resources = Vec::new();
    let mut kept = std::collections::HashMap::new();
    for (_, crd) in snapshot.list(TABLE, "") {
        let compiled = match cache.get(crd.uid()) {
            Some((version, compiled)) if *version == crd.resource_version() => compiled.clone(),
            Some((_, previous)) => resources_of(&crd, previous),
            None => resources_of(&crd, &[]),
        };
        resources.extend(compiled.iter().cloned());
        kept.insert(crd.uid().to_owned(), (crd.resource_version(), compiled));
    }
    if inner.mutating_policies {
        resources.extend(registry::mutating_policies());
    }
    let had_none = cache.keys().all(|uid| kept.contains_key(uid));
    let had_none = had_none && inner.registry.load().revision() == 0;
    *cache = Arc::new(kept);
    if had_none && resources.is_empty() {
        return;
    }
    let revision = snapshot.resource_version();
    inner.registry.store(Arc::new(Registry::with_custom(resources, revision)));
}

/// One entry per served version of an established CRD.
///
/// `previous` are the resources of the CRD's previous state.
fn resources_of(crd: &Stored, previous: &[Arc<ResourceInfo>]) -> Vec<Arc<ResourceInfo>> {
    let object = crd.content();
    if !has_condition(object, "Established") {
        return Vec::new();
    }
    let versions = object["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut served: Vec<&Value> =
        versions.iter().filter(|version| version["served"] == true).collect();
    served.sort_by(|one, two| compare_versions(text(&one["name"]), text(&two["name"])).reverse());
    let changed = changed_at(crd, previous);
    served.into_iter().map(|version| Arc::new(resource(object, version, changed))).collect()
}

/// The version of the store at which the specification of a CRD last changed, or a later one.
fn changed_at(crd: &Stored, previous: &[Arc<ResourceInfo>]) -> u64 {
    let generation = crd.content()["metadata"]["generation"].as_i64().unwrap_or(1);
    let known = previous.first().and_then(|resource| resource.custom.as_ref());
    match known {
        Some(custom) if custom.generation == generation => custom.changed_at,
        _ if generation == 1 => 0,
        _ => crd.resource_version(),
    }
}

/// Whether a condition of the CRD is true.
pub(crate) fn has_condition(crd: &Value, kind: &str) -> bool {
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

fn resource(crd: &Value, version: &Value, changed_at: u64) -> ResourceInfo {
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
    let schema = schema::custom(&version["schema"]["openAPIV3Schema"]);
    let custom = CustomResource {
        terminating: crd["metadata"]["deletionTimestamp"].is_string(),
        changed_at,
        undefaulted: undefaulted(crd, version, changed_at),
        ..custom(crd, version)
    };
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
        custom: Some(Arc::new(custom)),
        schema,
    }
}

/// Which stored objects may lack defaults.
///
/// Objects that are stored in a different version from the one they were written in do not have the
/// defaults of the stored version. The status is dropped from new objects after their defaults are
/// filled in.
fn undefaulted(crd: &Value, version: &Value, changed_at: u64) -> Undefaulted {
    let versions = crd["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !versions.iter().any(|version| mentions_default(&version["schema"])) {
        return Undefaulted::Before(0);
    }
    let status = &version["schema"]["openAPIV3Schema"]["properties"]["status"];
    let drops_default =
        !status["default"].is_null() && !version["subresources"]["status"].is_null();
    match versions.len() > 1 || drops_default {
        true => Undefaulted::All,
        false => Undefaulted::Before(changed_at),
    }
}

/// Whether a schema may have defaults; properties named `default` count as well.
fn mentions_default(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            fields.iter().any(|(key, value)| key == "default" || mentions_default(value))
        }
        Value::Array(items) => items.iter().any(mentions_default),
        _ => false,
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

fn custom(crd: &Value, version: &Value) -> CustomResource {
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
        generation: crd["metadata"]["generation"].as_i64().unwrap_or(1),
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
        ..CustomResource::default()
    }
}

#[cfg(test)]
mod tests;
