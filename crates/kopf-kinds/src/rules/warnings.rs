//! Warnings about values that are accepted, but probably not intended: `Warning` headers.

use std::collections::{HashMap, HashSet};

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
        _ => return Vec::new(),
    };
    let mut warnings = Vec::new();
    if let Some(spec) = object.pointer(pointer) {
        variables(spec, path, &mut warnings);
        ports(spec, path, &mut warnings);
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
    ["initContainers", "containers"].into_iter().flat_map(move |field| {
        let path = path.clone();
        let all = list(spec, field).iter().enumerate();
        all.map(move |(index, container)| (container, format!("{path}.{field}[{index}]")))
    })
}

fn variables(spec: &Value, path: &str, warnings: &mut Vec<String>) {
    for (container, path) in containers(spec, path) {
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
                    "{path}.env[{index}]: hides previous definition of {name:?}, which may be \
                     dropped when using apply"
                ));
            }
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
