//! Warnings about values that are accepted, but probably not intended: `Warning` headers.

mod pod_specs;

use std::collections::{HashMap, HashSet};

use base64::Engine;
use serde_json::Value;

use crate::fields::{list, text};

/// The warnings about one object.
pub(crate) fn of(group: &str, resource: &str, object: &Value) -> Vec<String> {
    let (pointer, path) = match (group, resource) {
        ("", "pods") => ("/spec", "spec"),
        ("", "podtemplates") => ("/template/spec", "template.spec"),
        ("batch", "cronjobs") => {
            ("/spec/jobTemplate/spec/template/spec", "spec.jobTemplate.spec.template.spec")
        }
        ("apps" | "batch", _) | ("", "replicationcontrollers") => {
            ("/spec/template/spec", "spec.template.spec")
        }
        ("", "serviceaccounts") => return account(object).into_iter().collect(),
        ("", "services") => return service(object),
        ("", "persistentvolumes") => return volume(object),
        ("", "persistentvolumeclaims") => return claim(object),
        ("", "secrets") => return secret(object).into_iter().collect(),
        _ => return Vec::new(),
    };
    let mut warnings = Vec::new();
    if let Some(spec) = object.pointer(pointer) {
        let owner = pointer.strip_suffix("/spec").unwrap_or_default();
        let metadata = object.pointer(&format!("{owner}/metadata")).unwrap_or(&Value::Null);
        pod_specs::before(spec, metadata, path, &mut warnings);
        for (container, place) in containers(spec, path) {
            pod_specs::annotations(container, spec, metadata, path, &mut warnings);
            for name in pod_specs::WHOLE_AMOUNTS {
                for kind in ["limits", "requests"] {
                    let at = format!("{place}.resources.{kind}");
                    let amount = &container["resources"][kind][name];
                    warnings.extend(pod_specs::fraction(amount, name, &at));
                }
            }
            variables(container, &place, &mut warnings);
        }
        ports(spec, path, &mut warnings);
        pod_specs::after(spec, path, &mut warnings);
    }
    warnings
}

/// The warning about a service account that limits the secrets that its pods may mount.
fn account(object: &Value) -> Option<String> {
    const ANNOTATION: &str = "kubernetes.io/enforce-mountable-secrets";
    object["metadata"]["annotations"].get(ANNOTATION).map(|_| {
        format!(
            "metadata.annotations[{ANNOTATION}]: deprecated in v1.32+; prefer separate namespaces \
             to isolate access to mounted secrets"
        )
    })
}

/// The warnings about fields of a service that have no effect.
fn service(object: &Value) -> Vec<String> {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let mut warnings = Vec::new();
    if object["metadata"]["annotations"].get(HINTS).is_some() {
        warnings.push(format!(
            "annotation {HINTS} is deprecated, please use service.kubernetes.io/topology-mode \
             instead"
        ));
    }
    let spec = &object["spec"];
    let is_name = spec["type"] == "ExternalName";
    if is_name && !list(spec, "externalIPs").is_empty() {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !is_name && !text(spec, "externalName").is_empty() {
        let warning = "spec.externalName is ignored when spec.type is not \"ExternalName\"";
        warnings.push(warning.to_owned());
    }
    warnings
}

/// The warnings about a volume whose source or policy is out of use.
fn volume(object: &Value) -> Vec<String> {
    let spec = &object["spec"];
    let mut warnings = Vec::new();
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. \
             Instead, the recommended approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    warnings.extend(pod_specs::old_source(spec, "spec"));
    warnings
}

/// The warnings about a claim of a part of a byte.
fn claim(object: &Value) -> Vec<String> {
    const ONE: i128 = 1_000_000_000;
    let mut warnings = Vec::new();
    for kind in ["requests", "limits"] {
        let amount = &object["spec"]["resources"][kind]["storage"];
        if super::resources::nanos(amount).is_some_and(|nanos| nanos % ONE != 0) {
            let shown = amount.as_str().unwrap_or_default();
            warnings.push(format!(
                "spec.resources.{kind}[storage]: fractional byte value {shown:?} is invalid, must \
                 be an integer"
            ));
        }
    }
    warnings
}

/// The warning about a certificate that cannot be one.
fn secret(object: &Value) -> Option<String> {
    const PEM_START: &[u8] = b"-----BEGIN ";
    let has_pem = |key: &str| {
        let text = object["data"][key].as_str()?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
        Some(bytes.windows(PEM_START.len()).any(|part| part == PEM_START))
    };
    if object["type"] != "kubernetes.io/tls" {
        return None;
    }
    let part = match (has_pem("tls.crt")?, has_pem("tls.key")?) {
        (false, _) => "certificate",
        (true, false) => "key",
        (true, true) => return None,
    };
    Some(format!("tls: failed to find any PEM data in {part} input"))
}

/// The warnings about new objects of a kind that has none for updated ones.
pub(crate) fn of_new(group: &str, resource: &str, object: &Value) -> Option<String> {
    let is_named = group == "discovery.k8s.io"
        && resource == "endpointslices"
        && object["addressType"] == "FQDN";
    is_named.then(|| "spec.addressType: FQDN endpoints are deprecated".to_owned())
}

/// The warning about a name that is also used as a host name.
pub(crate) fn of_name(group: &str, resource: &str, name: &str) -> Option<String> {
    const LABEL_LENGTH_MAX: usize = 63;
    let use_of_name = match (group, resource) {
        ("", "pods") => "this is used in the Pod's hostname",
        ("apps", "deployments" | "replicasets" | "statefulsets")
        | ("batch", "jobs")
        | ("", "replicationcontrollers") => "this is used in Pod names and hostnames",
        _ => return None,
    };
    let mut problems = Vec::new();
    if name.contains('.') {
        problems.push("must not contain dots".to_owned());
    }
    if name.len() > LABEL_LENGTH_MAX {
        problems.push(format!("must be no more than {LABEL_LENGTH_MAX} characters"));
    }
    if problems.is_empty() {
        return None;
    }
    Some(format!(
        "metadata.name: {use_of_name}, which can result in surprising behavior; a DNS label is \
         recommended: [{}]",
        problems.join(", ")
    ))
}

/// Containers in upstream's order, with their paths.
fn containers<'spec>(
    spec: &'spec Value,
    path: &str,
) -> impl Iterator<Item = (&'spec Value, String)> {
    let path = path.to_owned();
    let fields = ["initContainers", "containers", "ephemeralContainers"];
    fields.into_iter().flat_map(move |field| {
        let path = path.clone();
        let all = list(spec, field).iter().enumerate();
        all.map(move |(index, container)| (container, format!("{path}.{field}[{index}]")))
    })
}

fn variables(container: &Value, path: &str, warnings: &mut Vec<String>) {
    let mut seen = HashSet::new();
    for (index, variable) in list(container, "env").iter().enumerate() {
        let name = text(variable, "name");
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        let value = text(variable, "value");
        // A value that extends the previous one is intended.
        let extends = value.contains(&reference) && value != reference;
        if !extends || variable["valueFrom"].is_object() {
            warnings.push(format!(
                "{path}.env[{index}]: hides previous definition of {name:?}, which may be dropped \
                 when using apply"
            ));
        }
    }
}

fn ports(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    let mut numbers: HashMap<(i64, &str), Vec<(String, &Value)>> = HashMap::new();
    let mut names: HashMap<&str, String> = HashMap::new();
    let mut about_names = Vec::new();
    for (container, path) in containers(spec, path) {
        for (index, port) in list(container, "ports").iter().enumerate() {
            let place = format!("{path}.ports[{index}]");
            if !text(port, "hostIP").is_empty() && port["hostPort"].as_i64().unwrap_or(0) == 0 {
                warnings.push(format!(
                    "{place}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} \
                     Protocol:{} HostIP:{}}}",
                    text(port, "name"),
                    port["containerPort"],
                    text(port, "protocol"),
                    text(port, "hostIP"),
                ));
            }
            let number = port["containerPort"].as_i64().unwrap_or_default();
            let others = numbers.entry((number, text(port, "protocol"))).or_default();
            for (other_place, other) in others.iter() {
                if let Some(relation) = relation(port, other) {
                    warnings
                        .push(format!("{place}: {relation} port definition with {other_place}"));
                }
            }
            others.push((place.clone(), port));
            let name = text(port, "name");
            if name.is_empty() {
                continue;
            }
            if let Some(other) = names.get(name) {
                about_names.push(format!(
                    "{place}: duplicate port name {name:?} with {other}, services and probes that \
                     select ports by name will use {other}"
                ));
            } else {
                names.insert(name, place);
            }
        }
    }
    warnings.extend(about_names);
}

/// How two ports with the same number and protocol conflict.
fn relation(port: &Value, other: &Value) -> Option<&'static str> {
    let host_port = |port: &Value| port["hostPort"].as_i64().unwrap_or_default();
    let (address, other_address) = (text(port, "hostIP"), text(other, "hostIP"));
    let (number, other_number) = (host_port(port), host_port(other));
    if address == other_address && number == other_number {
        Some("duplicate")
    } else if number == 0 || other_number == 0 {
        Some("overlapping")
    } else if number == other_number && address.is_empty() != other_address.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
