//! Discovery: groups, versions, resources and the server's own version.

use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::registry::{Group, GroupText, Registry};
use crate::resource::{ResourceInfo, join_api_version};

/// The reported major version of Kubernetes.
pub(crate) const MAJOR: &str = "1";
/// The reported minor version.
pub(crate) const MINOR: &str = "33";

/// `/version`.
pub(crate) fn version() -> Value {
    json!({
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": "32",
        "gitVersion": concat!("v1.33.0+kopf-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, platform_architecture()),
    })
}

fn platform_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// `/`: the list of paths.
pub(crate) fn paths(registry: &Registry) -> Value {
    let mut paths: Vec<String> = ["/.well-known/openid-configuration", "/api", "/api/v1", "/apis"]
        .map(str::to_owned)
        .to_vec();
    for group in registry.groups().iter().filter(|group| !group.name.is_empty()) {
        paths.push(format!("/apis/{}", group.name));
        for version in &group.versions {
            paths.push(format!("/apis/{}/{version}", group.name));
        }
    }
    for path in [
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    ] {
        paths.push(path.to_owned());
    }
    json!({ "paths": paths })
}

/// `/.well-known/openid-configuration`.
pub(crate) fn openid_configuration(address: &str) -> Value {
    json!({
        "issuer": crate::tokens::AUDIENCE,
        "jwks_uri": format!("https://{address}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    })
}

/// `/api` for clients without aggregated discovery.
pub(crate) fn core_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis` for clients without aggregated discovery.
pub(crate) fn groups(registry: &Registry) -> Value {
    let groups: Vec<Value> = named_groups(registry).map(group_body).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// `/apis/GROUP`.
pub(crate) fn group(registry: &Registry, name: &str) -> Option<Value> {
    let group = registry.groups().iter().find(|group| group.name == name)?;
    let mut body = json!({ "kind": "APIGroup", "apiVersion": "v1" });
    if let (Some(fields), Value::Object(group)) = (body.as_object_mut(), group_body(group)) {
        fields.extend(group);
    }
    Some(body)
}

fn named_groups(registry: &Registry) -> impl Iterator<Item = &Group> {
    registry.groups().iter().filter(|group| !group.name.is_empty())
}

fn group_body(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            json!({ "groupVersion": join_api_version(&group.name, version), "version": version })
        })
        .collect();
    json!({ "name": group.name, "versions": versions, "preferredVersion": versions[0] })
}

/// `/api/v1` and `/apis/GROUP/VERSION`.
pub(crate) fn resources(registry: &Registry, group: &str, version: &str) -> Value {
    let mut entries = Vec::new();
    for resource in registry.of_version(group, version) {
        entries.push(resource_entry(resource));
        for subresource in &resource.subresources {
            let mut entry = json!({
                "name": format!("{}/{}", resource.resource, subresource.name),
                "singularName": "",
                "namespaced": resource.namespaced,
            });
            if !subresource.version.is_empty() {
                entry["group"] = json!(subresource.group);
                entry["version"] = json!(subresource.version);
            }
            entry["kind"] = json!(subresource.kind);
            entry["verbs"] = json!(subresource.verbs);
            entries.push(entry);
        }
    }
    let mut list = json!({ "kind": "APIResourceList" });
    if !group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    list["groupVersion"] = json!(join_api_version(group, version));
    list["resources"] = Value::Array(entries);
    list
}

fn resource_entry(resource: &ResourceInfo) -> Value {
    let mut entry = json!({
        "name": resource.resource,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": listed_verbs(resource),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    if resource.allows("create") && resource.allows("get") {
        entry["storageVersionHash"] = json!(storage_version_hash(resource));
    }
    entry
}

/// The verbs of a resource as discovery lists them.
///
/// While its definition is terminating, a real server lists no write verbs for the resource itself,
/// although it rejects only creations; its subresources keep their verbs.
fn listed_verbs(resource: &ResourceInfo) -> Vec<&str> {
    let is_terminating = resource.custom.as_ref().is_some_and(|custom| custom.terminating);
    let is_listed = |verb: &&str| !is_terminating || !["create", "patch", "update"].contains(verb);
    resource.verbs.iter().map(String::as_str).filter(is_listed).collect()
}

fn storage_version_hash(resource: &ResourceInfo) -> String {
    use base64::Engine;
    // Some kinds are stored in another version or group than the one that is served.
    let (group, version) = match (resource.group.as_str(), resource.resource.as_str()) {
        ("events.k8s.io", "events") => ("", "v1"),
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            ("apiextensions.k8s.io", "v1beta1")
        }
        ("networking.k8s.io", "ipaddresses" | "servicecidrs") => ("networking.k8s.io", "v1beta1"),
        (group, _) => (group, resource.storage_version.as_str()),
    };
    let text = format!("{group}/{version}/{}", resource.kind);
    base64::engine::general_purpose::STANDARD.encode(&Sha256::digest(text)[..8])
}

/// An aggregated discovery document.
pub(crate) struct Aggregated {
    /// The document.
    pub(crate) body: Bytes,
    /// Its media type.
    pub(crate) content_type: String,
    /// Its entity tag, including quotes.
    pub(crate) etag: String,
}

/// The first version of aggregated discovery in an `Accept` header, if any.
pub(crate) fn aggregated_version(accept: &str) -> Option<&'static str> {
    accept.split(',').find_map(|clause| {
        let asks = clause.contains("g=apidiscovery.k8s.io")
            && clause.contains("as=APIGroupDiscoveryList")
            && clause.trim_start().starts_with("application/json");
        let version = |version: &str| {
            clause.split(';').any(|parameter| parameter.trim() == format!("v={version}"))
        };
        match asks {
            true if version("v2") => Some("v2"),
            true if version("v2beta1") => Some("v2beta1"),
            _ => None,
        }
    })
}

/// The aggregated document for `/api` (`core`) or `/apis`.
pub(crate) fn aggregated(registry: &Registry, core: bool, version: &str) -> Aggregated {
    let mut body = format!(
        "{{\"kind\":\"APIGroupDiscoveryList\",\
         \"apiVersion\":\"apidiscovery.k8s.io/{version}\",\"metadata\":{{}},\"items\":["
    );
    let mut digest = Sha256::new_with_prefix(version);
    let groups = registry.groups().iter().filter(|group| group.name.is_empty() == core);
    for (index, group) in groups.enumerate() {
        let text = registry.text_of(group, group_text);
        body.push_str(if index == 0 { "" } else { "," });
        body.push_str(&text.json);
        digest.update(text.digest);
    }
    body.push_str("]}");
    let etag = format!("\"{}\"", hex(&digest.finalize()).to_uppercase());
    Aggregated {
        body: Bytes::from(body),
        content_type: format!(
            "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        ),
        etag,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn group_text(registry: &Registry, group: &Group) -> GroupText {
    let json = aggregated_group(registry, group).to_string();
    GroupText { digest: Sha256::digest(&json).into(), json: json.into() }
}

fn aggregated_group(registry: &Registry, group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| {
            let resources: Vec<Value> = registry
                .of_version(&group.name, version)
                .map(|resource| aggregated_resource(resource))
                .collect();
            json!({ "version": version, "resources": resources, "freshness": "Current" })
        })
        .collect();
    let metadata = if group.name.is_empty() {
        json!({ "creationTimestamp": null })
    } else {
        json!({ "name": group.name, "creationTimestamp": null })
    };
    json!({ "metadata": metadata, "versions": versions })
}

fn aggregated_resource(resource: &ResourceInfo) -> Value {
    let kind = |group: &str, version: &str, kind: &str| json!({ "group": group, "version": version, "kind": kind });
    let mut entry = json!({
        "resource": resource.resource,
        "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": listed_verbs(resource),
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    let subresources: Vec<Value> = resource
        .subresources
        .iter()
        .map(|sub| {
            let (group, version) = if sub.version.is_empty() {
                (&resource.group, &resource.version)
            } else {
                (&sub.group, &sub.version)
            };
            json!({
                "subresource": sub.name,
                "responseKind": kind(group, version, &sub.kind),
                "verbs": sub.verbs,
            })
        })
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = Value::Array(subresources);
    }
    entry
}
