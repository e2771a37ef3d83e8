//! Rules of services, ingresses, endpoint slices and network policies.

use std::collections::HashSet;

use serde_json::Value;

use super::pod_spec::{LABEL_DETAIL, check_port_number, is_label};
use super::{Problems, go_text};
use crate::kinds::fields::{is_empty, list, text};
use crate::{FieldError, FieldErrorReason};

pub(super) fn check(resource: &str, object: &Value, problems: &mut Problems) {
    match resource {
        "ingresses" => ingress(&object["spec"], problems),
        "endpointslices" => {
            let types = ["FQDN", "IPv4", "IPv6"];
            addresses(object, problems);
            if text(object, "addressType").is_empty() {
                problems.required("addressType", "");
            } else {
                problems.one_of("addressType", &object["addressType"], &types);
            }
        }
        "networkpolicies" => {
            for (index, kind) in list(&object["spec"], "policyTypes").iter().enumerate() {
                let path = format!("spec.policyTypes[{index}]");
                problems.one_of(&path, kind, &["Ingress", "Egress"]);
            }
        }
        _ => {}
    }
}

fn addresses(object: &Value, problems: &mut Problems) {
    if !matches!(text(object, "addressType"), "IPv4" | "IPv6") {
        return;
    }
    for (index, endpoint) in list(object, "endpoints").iter().enumerate() {
        for (position, address) in list(endpoint, "addresses").iter().enumerate() {
            let text = address.as_str().unwrap_or_default();
            if !is_address(text) {
                problems.invalid(
                    &format!("endpoints[{index}].addresses[{position}]"),
                    address,
                    "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                );
            }
        }
    }
}

/// Upstream still accepts leading zeros in IPv4 addresses.
fn is_address(text: &str) -> bool {
    let numbers: Vec<&str> = text.split('.').collect();
    let is_sloppy = numbers.len() == 4
        && numbers.iter().all(|number| {
            number.bytes().all(|digit| digit.is_ascii_digit()) && number.parse::<u8>().is_ok()
        });
    is_sloppy || text.parse::<std::net::IpAddr>().is_ok()
}

pub(super) fn slice_update(object: &Value, old: &Value, problems: &mut Problems) {
    if object["addressType"] != old["addressType"] {
        problems.invalid("addressType", &object["addressType"], "field is immutable");
    }
}

pub(super) fn service(object: &Value, problems: &mut Problems) {
    let spec = &object["spec"];
    let kind = text(spec, "type");
    let is_headless = text(spec, "clusterIP") == "None";
    let ports = list(spec, "ports");
    if ports.is_empty() && !is_headless && kind != "ExternalName" {
        problems.required("spec.ports", "");
    }
    match kind {
        "LoadBalancer" | "NodePort" if is_headless => {
            let detail = format!("may not be set to 'None' for {kind} services");
            problems.invalid("spec.clusterIPs[0]", &"None".into(), &detail);
        }
        "ExternalName" if is_empty(spec, "externalName") => {
            problems.required("spec.externalName", "");
        }
        _ => {}
    }
    problems.one_of(
        "spec.type",
        &spec["type"],
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
    );
    problems.one_of("spec.sessionAffinity", &spec["sessionAffinity"], &["ClientIP", "None"]);
    let mut names = HashSet::new();
    let mut numbers = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        let name = text(port, "name");
        if name.is_empty() && ports.len() > 1 {
            problems.required(&format!("{path}.name"), "");
        } else if !name.is_empty() && !is_label(name) {
            problems.invalid(&format!("{path}.name"), &port["name"], LABEL_DETAIL);
        } else if !name.is_empty() && !names.insert(name) {
            problems.duplicate(&format!("{path}.name"), &port["name"]);
        }
        check_port_number(&port["port"], &format!("{path}.port"), problems);
        let protocols = ["SCTP", "TCP", "UDP"];
        problems.one_of(&format!("{path}.protocol"), &port["protocol"], &protocols);
        if port["targetPort"].is_number() {
            check_port_number(&port["targetPort"], &format!("{path}.targetPort"), problems);
        }
        let identity = (port["port"].as_i64(), text(port, "protocol"));
        if !numbers.insert(identity) {
            let shown = format!(
                "Duplicate value: core.ServicePort{{Name:\"\", Protocol:{:?}, \
                 AppProtocol:(*string)(nil), Port:{}, TargetPort:{}, NodePort:0}}",
                text(port, "protocol"),
                port["port"],
                go_text::int_or_string(&Value::from(0)),
            );
            problems.found.push(FieldError::new(FieldErrorReason::Duplicate, path, shown));
        }
    }
}

pub(super) fn service_update(object: &Value, old: &Value, problems: &mut Problems) {
    let (spec, old_spec) = (&object["spec"], &old["spec"]);
    if text(spec, "type") == "ExternalName" || text(old_spec, "type") == "ExternalName" {
        return;
    }
    let (new, before) = (text(spec, "clusterIP"), text(old_spec, "clusterIP"));
    if new != before && !before.is_empty() {
        let shown = go_text::string_list(&spec["clusterIPs"]);
        problems.invalid_text("spec.clusterIPs[0]", &shown, "may not change once set");
    }
}

fn ingress(spec: &Value, problems: &mut Problems) {
    if is_empty(spec, "rules") && is_empty(spec, "defaultBackend") {
        let detail = "either `defaultBackend` or `rules` must be specified";
        problems.invalid_text("spec", "[]networking.IngressRule(nil)", detail);
    }
    if !is_empty(spec, "defaultBackend") {
        backend(&spec["defaultBackend"], "spec.defaultBackend", problems);
    }
    for (index, rule) in list(spec, "rules").iter().enumerate() {
        let Some(http) = rule.get("http").filter(|http| http.is_object()) else { continue };
        let path = format!("spec.rules[{index}].http.paths");
        if is_empty(http, "paths") {
            problems.required(&path, "");
        }
        for (index, entry) in list(http, "paths").iter().enumerate() {
            let path = format!("{path}[{index}]");
            let types = ["Exact", "ImplementationSpecific", "Prefix"];
            if entry["pathType"].is_null() {
                problems.required(&format!("{path}.pathType"), "pathType must be specified");
                continue;
            }
            problems.one_of(&format!("{path}.pathType"), &entry["pathType"], &types);
            let is_exact = matches!(text(entry, "pathType"), "Exact" | "Prefix");
            if is_exact && !text(entry, "path").starts_with('/') {
                problems.invalid(
                    &format!("{path}.path"),
                    &Value::from(text(entry, "path")),
                    "must be an absolute path",
                );
            }
            backend(&entry["backend"], &format!("{path}.backend"), problems);
        }
    }
}

fn backend(backend: &Value, path: &str, problems: &mut Problems) {
    let (service, resource) = (&backend["service"], &backend["resource"]);
    match (service.is_object(), resource.is_object()) {
        (true, true) => {
            problems.invalid(path, &"".into(), "cannot set both resource and service backends")
        }
        (false, false) => problems.required(path, "port name or number is required"),
        (true, false) => {
            if text(service, "name").is_empty() {
                problems.required(&format!("{path}.service.name"), "");
            }
            let port = &service["port"];
            let has_number = port["number"].as_i64().unwrap_or_default() != 0;
            if !has_number && text(port, "name").is_empty() {
                problems.required(path, "port name or number is required");
            }
        }
        (false, true) => {}
    }
}
