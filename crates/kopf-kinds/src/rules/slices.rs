//! Rules of endpoint slices.

use std::collections::HashSet;

use serde_json::Value;

use super::network::{ADDRESS_DETAIL, is_address};
use super::{Problems, ingress};
use crate::fields::{is_empty, list, text};
use crate::names::{
    check_label_value, label_problems, qualified_name_problems, subdomain_problems,
};

const ENDPOINTS_MAX: usize = 1000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
const HINTS_MAX: usize = 8;

/// The errors of a slice; endpoints that were accepted before remain valid.
pub(super) fn check(object: &Value, old: Option<&Value>, problems: &mut Problems) {
    if is_empty(object, "addressType") {
        problems.required("addressType", "");
    } else {
        problems.one_of("addressType", &object["addressType"], &["FQDN", "IPv4", "IPv6"]);
    }
    ports(list(object, "ports"), problems);
    if old.is_none_or(|old| old["endpoints"] != object["endpoints"]) {
        endpoints(object, problems);
    }
}

/// Checks the immutable fields of a slice.
pub(super) fn update(object: &Value, old: &Value, problems: &mut Problems) {
    problems.immutable("addressType", &object["addressType"], &old["addressType"]);
}

fn ports(ports: &[Value], problems: &mut Problems) {
    if ports.len() > PORTS_MAX {
        problems.too_many("ports", ports.len(), PORTS_MAX);
        return;
    }
    let mut names = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("ports[{index}]");
        let name = text(port, "name");
        if !name.is_empty() {
            for problem in label_problems(name) {
                problems.invalid(&format!("{path}.name"), &port["name"], &problem);
            }
        }
        if !names.insert(name) {
            problems.duplicate(&format!("{path}.name"), &name.into());
        }
        let protocols = ["SCTP", "TCP", "UDP"];
        problems.one_of(&format!("{path}.protocol"), &port["protocol"], &protocols);
        if let Some(protocol) = port["appProtocol"].as_str() {
            for problem in qualified_name_problems(protocol) {
                problems.invalid(&format!("{path}.appProtocol"), &protocol.into(), &problem);
            }
        }
    }
}

fn endpoints(object: &Value, problems: &mut Problems) {
    let endpoints = list(object, "endpoints");
    if endpoints.len() > ENDPOINTS_MAX {
        problems.too_many("endpoints", endpoints.len(), ENDPOINTS_MAX);
        return;
    }
    for (index, endpoint) in endpoints.iter().enumerate() {
        let path = format!("endpoints[{index}]");
        addresses(endpoint, text(object, "addressType"), &format!("{path}.addresses"), problems);
        if let Some(node) = endpoint["nodeName"].as_str() {
            for problem in subdomain_problems(node) {
                problems.invalid(&format!("{path}.nodeName"), &node.into(), &problem);
            }
        }
        if let Some(host) = endpoint["hostname"].as_str() {
            for problem in label_problems(host) {
                problems.invalid(&format!("{path}.hostname"), &host.into(), &problem);
            }
        }
        hints(&endpoint["hints"], &format!("{path}.hints"), problems);
    }
}

fn addresses(endpoint: &Value, kind: &str, path: &str, problems: &mut Problems) {
    let addresses = list(endpoint, "addresses");
    if addresses.is_empty() {
        problems.required(path, "must contain at least 1 address");
    } else if addresses.len() > ADDRESSES_MAX {
        problems.too_many(path, addresses.len(), ADDRESSES_MAX);
    }
    for (index, address) in addresses.iter().enumerate() {
        let at = format!("{path}[{index}]");
        match kind {
            "IPv4" | "IPv6" => number_address(address, kind, path, &at, problems),
            "FQDN" => domain(address, &at, problems),
            _ => {}
        }
    }
}

fn number_address(address: &Value, kind: &str, path: &str, at: &str, problems: &mut Problems) {
    let text = address.as_str().unwrap_or_default();
    if !is_address(text) {
        problems.invalid(at, address, ADDRESS_DETAIL);
        return;
    }
    if let Ok(parsed) = text.parse::<std::net::IpAddr>()
        && parsed.to_string() != text
    {
        problems.invalid(at, address, &format!("must be in canonical form (\"{parsed}\")"));
    }
    if text.contains(':') != (kind == "IPv6") {
        problems.invalid(path, address, &format!("must be an {kind} address"));
    }
    ingress::usable(address, at, problems);
}

fn domain(address: &Value, path: &str, problems: &mut Problems) {
    let name = address.as_str().unwrap_or_default();
    if name.is_empty() {
        problems.required(path, "");
        return;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let wrong = subdomain_problems(name);
    if !wrong.is_empty() {
        problems.invalid(path, &name.into(), &wrong.join(","));
    } else if !name.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        problems.invalid(path, &name.into(), detail);
    }
}

fn hints(hints: &Value, path: &str, problems: &mut Problems) {
    let is_wrong = |field: &str, name: &str| match field {
        "forZones" => check_label_value(name).err().into_iter().collect(),
        _ => subdomain_problems(name),
    };
    for field in ["forZones", "forNodes"] {
        let path = format!("{path}.{field}");
        let hints = list(hints, field);
        if hints.len() > HINTS_MAX {
            problems.too_many(&path, hints.len(), HINTS_MAX);
            return;
        }
        let mut names = HashSet::new();
        for (index, hint) in hints.iter().enumerate() {
            let path = format!("{path}[{index}].name");
            let name = text(hint, "name");
            if !names.insert(name) {
                problems.duplicate(&path, &name.into());
            }
            for problem in is_wrong(field, name) {
                problems.invalid(&path, &name.into(), &problem);
            }
        }
    }
}
