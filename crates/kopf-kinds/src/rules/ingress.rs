//! Rules of ingresses and network policies.

use std::net::IpAddr;

use serde_json::Value;

use super::containers::{port_name_problems, port_or_name};
use super::jobs::domain_path;
use super::network::{ADDRESS_DETAIL, is_address};
use super::{Problems, go_text, labels};
use crate::fields::{is_empty, list, text};
use crate::names::{label_problems, name_problem, path_segment_problems, subdomain_problems};

const CIDR_DETAIL: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
/// Substrings that are not allowed in paths.
const BAD_PATH_PARTS: [&str; 6] = ["//", "/./", "/../", "%2f", "%2F", "/.."];

pub(super) fn ingress(object: &Value, is_new: bool, problems: &mut Problems) {
    let spec = &object["spec"];
    const CLASS: &str = "/metadata/annotations/kubernetes.io~1ingress.class";
    if let (Some(old_way), Some(new_way)) = (object.pointer(CLASS), spec.get("ingressClassName"))
        && is_new
        && old_way != new_way
    {
        let detail = "must match `ingressClassName` when both are specified";
        problems.invalid("annotations.kubernetes.io/ingress.class", old_way, detail);
    }
    if is_empty(spec, "rules") && is_empty(spec, "defaultBackend") {
        let detail = "either `defaultBackend` or `rules` must be specified";
        problems.invalid_text("spec", "[]networking.IngressRule(nil)", detail);
    }
    for (index, entry) in list(spec, "tls").iter().enumerate() {
        for (place, host) in list(entry, "hosts").iter().enumerate() {
            self::host(host, &format!("spec.tls[{index}].hosts[{place}]"), problems);
        }
        let name = text(entry, "secretName");
        if !name.is_empty() {
            for problem in subdomain_problems(name) {
                let path = format!("spec.tls[{index}].secretName");
                problems.invalid(&path, &entry["secretName"], &problem);
            }
        }
    }
    if !is_empty(spec, "defaultBackend") {
        backend(&spec["defaultBackend"], "spec.defaultBackend", problems);
    }
    for (index, rule) in list(spec, "rules").iter().enumerate() {
        self::rule(rule, &format!("spec.rules[{index}]"), problems);
    }
    if let Some(class) = spec["ingressClassName"].as_str() {
        for problem in subdomain_problems(class) {
            problems.invalid("spec.ingressClassName", &class.into(), &problem);
        }
    }
}

/// Checks an ingress class.
pub(super) fn class(spec: &Value, problems: &mut Problems) {
    const CONTROLLER_LENGTH_MAX: usize = 250;
    if text(spec, "controller").len() > CONTROLLER_LENGTH_MAX {
        problems.too_long("spec.controller", CONTROLLER_LENGTH_MAX);
    }
    domain_path(text(spec, "controller"), "spec.controller", problems);
    let parameters = &spec["parameters"];
    if !parameters.is_object() {
        return;
    }
    let path = "spec.parameters";
    typed_reference(parameters, path, problems);
    let namespace = format!("{path}.namespace");
    match text(parameters, "scope") {
        "" => problems.required(&format!("{path}.scope"), ""),
        "Namespace" => match parameters["namespace"].as_str() {
            None => problems.required(&namespace, "`parameters.scope` is set to 'Namespace'"),
            Some(name) => {
                for problem in label_problems(name) {
                    problems.invalid(&namespace, &name.into(), &problem);
                }
            }
        },
        "Cluster" => {
            if !parameters["namespace"].is_null() {
                problems.forbidden(&namespace, "`parameters.scope` is set to 'Cluster'");
            }
        }
        _ => {
            let scopes = ["Cluster", "Namespace"];
            problems.one_of(&format!("{path}.scope"), &parameters["scope"], &scopes);
        }
    }
}

/// Checks the group, kind and name of another object.
fn typed_reference(reference: &Value, path: &str, problems: &mut Problems) {
    if let Some(group) = reference["apiGroup"].as_str() {
        for problem in subdomain_problems(group) {
            problems.invalid(&format!("{path}.apiGroup"), &group.into(), &problem);
        }
    }
    for field in ["kind", "name"] {
        let at = format!("{path}.{field}");
        if is_empty(reference, field) {
            problems.required(&at, &format!("{field} is required"));
            continue;
        }
        for problem in path_segment_problems(text(reference, field)) {
            problems.invalid(&at, &reference[field], &problem);
        }
    }
}

fn rule(rule: &Value, path: &str, problems: &mut Problems) {
    if !is_empty(rule, "host") {
        let at = format!("{path}.host");
        if text(rule, "host").parse::<IpAddr>().is_ok() {
            problems.invalid(&at, &rule["host"], "must be a DNS name, not an IP address");
        }
        host(&rule["host"], &at, problems);
    }
    let Some(http) = rule.get("http").filter(|http| http.is_object()) else { return };
    let path = format!("{path}.http.paths");
    if is_empty(http, "paths") {
        problems.required(&path, "");
    }
    for (index, entry) in list(http, "paths").iter().enumerate() {
        self::path(entry, &format!("{path}[{index}]"), problems);
    }
}

/// Checks a host name that may start with a wildcard.
fn host(host: &Value, path: &str, problems: &mut Problems) {
    let name = host.as_str().unwrap_or_default();
    if name.contains('*') {
        let is_fine = name
            .strip_prefix("*.")
            .is_some_and(|rest| !rest.is_empty() && subdomain_problems(rest).is_empty());
        if !is_fine {
            let detail = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid \
                          DNS subdomain, which must consist of lower case alphanumeric \
                          characters, '-' or '.' and end with an alphanumeric character (e.g. \
                          '*.example.com', regex used for validation is \
                          '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
            problems.invalid(path, host, detail);
        }
        return;
    }
    for problem in subdomain_problems(name) {
        problems.invalid(path, host, &problem);
    }
}

fn path(entry: &Value, path: &str, problems: &mut Problems) {
    let types = ["Exact", "ImplementationSpecific", "Prefix"];
    if entry["pathType"].is_null() {
        problems.required(&format!("{path}.pathType"), "pathType must be specified");
        return;
    }
    let place = text(entry, "path");
    let at = format!("{path}.path");
    match text(entry, "pathType") {
        "Exact" | "Prefix" => {
            if !place.starts_with('/') {
                problems.invalid(&at, &place.into(), "must be an absolute path");
            }
            for part in BAD_PATH_PARTS.iter().take(5).filter(|part| place.contains(**part)) {
                problems.invalid(&at, &place.into(), &format!("must not contain '{part}'"));
            }
            for part in ["/..", "/."].iter().filter(|part| place.ends_with(**part)) {
                problems.invalid(&at, &place.into(), &format!("cannot end with '{part}'"));
            }
        }
        "ImplementationSpecific" => {
            if !place.is_empty() && !place.starts_with('/') {
                problems.invalid(&at, &place.into(), "must be an absolute path");
            }
        }
        _ => problems.one_of(&format!("{path}.pathType"), &entry["pathType"], &types),
    }
    backend(&entry["backend"], &format!("{path}.backend"), problems);
}

fn backend(backend: &Value, path: &str, problems: &mut Problems) {
    let (service, resource) = (&backend["service"], &backend["resource"]);
    match (service.is_object(), resource.is_object()) {
        (true, true) => {
            problems.invalid(path, &"".into(), "cannot set both resource and service backends");
        }
        (false, false) => {
            problems.invalid(path, &"".into(), "resource or service backend is required");
        }
        (true, false) => service_backend(service, path, problems),
        (false, true) => typed_reference(resource, &format!("{path}.resource"), problems),
    }
}

fn service_backend(service: &Value, path: &str, problems: &mut Problems) {
    let name = text(service, "name");
    if name.is_empty() {
        problems.required(&format!("{path}.service.name"), "");
    } else {
        for problem in name_problem("", "services", name, false) {
            problems.invalid(&format!("{path}.service.name"), &service["name"], &problem);
        }
    }
    let port = &service["port"];
    let number = port["number"].as_i64().unwrap_or_default();
    let name = text(port, "name");
    match (number != 0, !name.is_empty()) {
        (true, true) => {
            problems.invalid(path, &"".into(), "cannot set both port name & port number");
        }
        (false, false) => problems.required(path, "port name or number is required"),
        (false, true) => {
            for problem in port_name_problems(name) {
                problems.invalid(&format!("{path}.service.port.name"), &port["name"], problem);
            }
        }
        (true, false) if !(1..=65535).contains(&number) => {
            let detail = "must be between 1 and 65535, inclusive";
            problems.invalid(&format!("{path}.service.port.number"), &port["number"], detail);
        }
        (true, false) => {}
    }
}

pub(super) fn network_policy(spec: &Value, problems: &mut Problems) {
    labels::check(&spec["podSelector"], "spec.podSelector", problems);
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for (index, rule) in list(spec, direction).iter().enumerate() {
            let path = format!("spec.{direction}[{index}]");
            for (place, port) in list(rule, "ports").iter().enumerate() {
                policy_port(port, &format!("{path}.ports[{place}]"), problems);
            }
            for (place, peer) in list(rule, peers).iter().enumerate() {
                self::peer(peer, &format!("{path}.{peers}[{place}]"), problems);
            }
        }
    }
    let types = list(spec, "policyTypes");
    if types.len() > 2 {
        let shown: Vec<String> = types.iter().map(Value::to_string).collect();
        let shown = format!("[]networking.PolicyType{{{}}}", shown.join(", "));
        let detail = "may not specify more than two policyTypes";
        problems.invalid_text("spec.policyTypes", &shown, detail);
        return;
    }
    for (index, kind) in types.iter().enumerate() {
        problems.one_of(&format!("spec.policyTypes[{index}]"), kind, &["Ingress", "Egress"]);
    }
}

fn policy_port(port: &Value, path: &str, problems: &mut Problems) {
    problems.one_of_if_set(port, path, "protocol", &["TCP", "UDP", "SCTP"]);
    let (number, end) = (&port["port"], &port["endPort"]);
    if number.is_null() {
        if !end.is_null() {
            let detail = "may not be specified when `port` is not specified";
            problems.invalid(&format!("{path}.endPort"), end, detail);
        }
        return;
    }
    if number.is_string() && !end.is_null() {
        let detail = "may not be specified when `port` is non-numeric";
        problems.invalid(&format!("{path}.endPort"), end, detail);
    }
    if let (Some(first), Some(last)) = (number.as_i64(), end.as_i64()) {
        if (1..=65535).contains(&first) && last < first {
            let detail = "must be greater than or equal to `port`";
            problems.invalid(&format!("{path}.endPort"), number, detail);
        }
        if last > 65535 {
            let detail = "must be between 1 and 65535, inclusive";
            problems.invalid(&format!("{path}.endPort"), end, detail);
        }
    }
    port_or_name(number, &format!("{path}.port"), problems);
}

fn peer(peer: &Value, path: &str, problems: &mut Problems) {
    let mut count = 0;
    for selector in ["podSelector", "namespaceSelector"] {
        if peer[selector].is_object() {
            count += 1;
            labels::check(&peer[selector], &format!("{path}.{selector}"), problems);
        }
    }
    let has_block = peer["ipBlock"].is_object();
    if has_block {
        block(&peer["ipBlock"], &format!("{path}.ipBlock"), problems);
    }
    if count == 0 && !has_block {
        problems.required(path, "must specify a peer");
    } else if count > 0 && has_block {
        problems.forbidden(path, "may not specify both ipBlock and another peer");
    }
}

fn block(block: &Value, path: &str, problems: &mut Problems) {
    let whole = text(block, "cidr");
    if whole.is_empty() {
        problems.required(&format!("{path}.cidr"), "");
        return;
    }
    let Some(network) = parse_cidr(whole) else {
        problems.invalid(&format!("{path}.cidr"), &block["cidr"], CIDR_DETAIL);
        return;
    };
    for (index, except) in list(block, "except").iter().enumerate() {
        let at = format!("{path}.except[{index}]");
        match parse_cidr(except.as_str().unwrap_or_default()) {
            None => problems.invalid(&at, except, CIDR_DETAIL),
            Some(part) if !is_strict_subset(part, network) => {
                problems.invalid(&at, except, "must be a strict subset of `cidr`");
            }
            Some(_) => {}
        }
    }
}

/// The address bits, their number, and the prefix length.
type Network = (u128, u32, u32);

/// Go's older parser, which upstream uses here, also accepts leading zeros in IPv4 addresses.
fn parse_cidr(text: &str) -> Option<Network> {
    let (address, length) = text.split_once('/')?;
    let length: u32 = length.parse().ok()?;
    let address = &without_zeros(address);
    let (bits, width) = match address.parse::<IpAddr>().ok()? {
        IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    (length <= width).then_some((bits, width, length))
}

fn without_zeros(address: &str) -> String {
    if address.contains(':') {
        return address.to_owned();
    }
    let part = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    address.split('.').map(part).collect::<Vec<_>>().join(".")
}

fn is_strict_subset(part: Network, whole: Network) -> bool {
    let shift = whole.1 - whole.2;
    let prefix = |bits: u128| if shift >= 128 { 0 } else { bits >> shift };
    part.1 == whole.1 && part.2 > whole.2 && prefix(part.0) == prefix(whole.0)
}

/// Whether a network is IPv6; `None` if it is not a network.
pub(super) fn is_wide(text: &str) -> Option<bool> {
    parse_cidr(text).map(|(_, width, _)| width > 32)
}

/// Rejects values that are not networks.
pub(super) fn cidr(value: &Value, path: &str, problems: &mut Problems) {
    if parse_cidr(value.as_str().unwrap_or_default().trim()).is_none() {
        problems.invalid(path, value, CIDR_DETAIL);
    }
}

/// Checks endpoints that are written by hand.
pub(super) fn endpoints(object: &Value, problems: &mut Problems) {
    for (index, subset) in list(object, "subsets").iter().enumerate() {
        let path = format!("subsets[{index}]");
        if is_empty(subset, "addresses") && is_empty(subset, "notReadyAddresses") {
            problems.required(&path, "must specify `addresses` or `notReadyAddresses`");
        }
        for field in ["addresses", "notReadyAddresses"] {
            for (place, address) in list(subset, field).iter().enumerate() {
                let at = format!("{path}.{field}[{place}].ip");
                let ip = text(address, "ip");
                if !is_address(ip) {
                    problems.invalid(&at, &ip.into(), ADDRESS_DETAIL);
                    problems.invalid(&at, &ip.into(), "must be a valid IP address");
                } else {
                    usable(&ip.into(), &at, problems);
                }
                let at = format!("{path}.{field}[{place}]");
                let (host, node) = (text(address, "hostname"), text(address, "nodeName"));
                if !host.is_empty() {
                    super::pod_spec::check_label(host, &format!("{at}.hostname"), problems);
                }
                let wrong = if node.is_empty() { Vec::new() } else { subdomain_problems(node) };
                for problem in wrong {
                    problems.invalid(&format!("{at}.nodeName"), &node.into(), &problem);
                }
            }
        }
        let ports = list(subset, "ports");
        for (place, port) in ports.iter().enumerate() {
            let at = format!("{path}.ports[{place}]");
            let name = text(port, "name");
            if ports.len() > 1 && name.is_empty() {
                problems.required(&format!("{at}.name"), "");
            } else if !name.is_empty() {
                super::pod_spec::check_label(name, &format!("{at}.name"), problems);
            }
            if let Some(protocol) = port["appProtocol"].as_str() {
                for problem in crate::names::qualified_name_problems(protocol) {
                    problems.invalid(&format!("{at}.appProtocol"), &protocol.into(), &problem);
                }
            }
            super::pod_spec::check_port_number(&port["port"], &format!("{at}.port"), problems);
            let protocols = ["SCTP", "TCP", "UDP"];
            problems.one_of(&format!("{at}.protocol"), &port["protocol"], &protocols);
        }
    }
}

/// Rejects addresses that other machines cannot reach.
pub(super) fn usable(address: &Value, path: &str, problems: &mut Problems) {
    let Ok(parsed) = address.as_str().unwrap_or_default().parse::<IpAddr>() else { return };
    let is_link_local = match parsed {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    if parsed.is_unspecified() {
        let shown = go_text::quoted(address);
        let detail = format!("may not be unspecified ({})", shown.trim_matches('"'));
        problems.invalid(path, address, &detail);
    }
    if parsed.is_loopback() {
        let detail = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        problems.invalid(path, address, detail);
    }
    let is_multicast = match parsed {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    };
    if is_multicast {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        problems.invalid(path, address, detail);
    }
    if is_link_local {
        let detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        problems.invalid(path, address, detail);
    }
}
