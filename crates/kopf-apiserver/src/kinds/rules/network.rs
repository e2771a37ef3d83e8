//! Rules of services and endpoint slices.

use std::collections::HashSet;

use serde_json::Value;

use super::pod_spec::{LABEL_DETAIL, check_port_number, is_label};
use super::{Problems, containers, go_text, ingress};
use crate::kinds::fields::{is_empty, list, text};
use crate::{FieldError, FieldErrorReason};

/// What is wrong with a text that is no address.
pub(super) const ADDRESS_DETAIL: &str =
    "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
/// Where addresses of services come from.
const SERVICE_NETWORK: &str = "10.96.0.0/16";
const SERVICE_PREFIX: &str = "10.96.";
const AFFINITY_SECONDS_MAX: i64 = 86_400;

pub(super) fn check(resource: &str, object: &Value, problems: &mut Problems) {
    match resource {
        "ingresses" => ingress::ingress(&object["spec"], problems),
        "endpointslices" => {
            let types = ["FQDN", "IPv4", "IPv6"];
            addresses(object, problems);
            slice_ports(object, problems);
            if text(object, "addressType").is_empty() {
                problems.required("addressType", "");
            } else {
                problems.one_of("addressType", &object["addressType"], &types);
            }
        }
        "networkpolicies" => ingress::network_policy(&object["spec"], problems),
        _ => {}
    }
}

fn slice_ports(object: &Value, problems: &mut Problems) {
    for (index, port) in list(object, "ports").iter().enumerate() {
        let path = format!("ports[{index}]");
        let name = text(port, "name");
        if !name.is_empty() && !is_label(name) {
            problems.invalid(&format!("{path}.name"), &port["name"], LABEL_DETAIL);
        }
        let protocols = ["SCTP", "TCP", "UDP"];
        problems.one_of(&format!("{path}.protocol"), &port["protocol"], &protocols);
    }
}

fn addresses(object: &Value, problems: &mut Problems) {
    if !matches!(text(object, "addressType"), "IPv4" | "IPv6") {
        return;
    }
    for (index, endpoint) in list(object, "endpoints").iter().enumerate() {
        if is_empty(endpoint, "addresses") {
            let path = format!("endpoints[{index}].addresses");
            problems.required(&path, "must contain at least 1 address");
        }
        for (position, address) in list(endpoint, "addresses").iter().enumerate() {
            let text = address.as_str().unwrap_or_default();
            if !is_address(text) {
                let path = format!("endpoints[{index}].addresses[{position}]");
                problems.invalid(&path, address, ADDRESS_DETAIL);
            }
        }
    }
}

/// Upstream still accepts leading zeros in IPv4 addresses.
pub(super) fn is_address(text: &str) -> bool {
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
        "ExternalName" => {
            let name = text(spec, "externalName");
            let name = name.strip_suffix('.').unwrap_or(name);
            if name.is_empty() {
                problems.required("spec.externalName", "");
            } else {
                for problem in crate::meta::names::subdomain_problems(name) {
                    problems.invalid("spec.externalName", &name.into(), &problem);
                }
            }
        }
        _ => {}
    }
    service_ports(ports, problems);
    crate::meta::validate_labels(&spec["selector"], "spec.selector", &mut problems.found);
    service_addresses(spec, problems);
    problems.one_of(
        "spec.type",
        &spec["type"],
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
    );
    service_policies(spec, problems);
}

fn service_addresses(spec: &Value, problems: &mut Problems) {
    problems.one_of("spec.sessionAffinity", &spec["sessionAffinity"], &["ClientIP", "None"]);
    let seconds = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    if spec["sessionAffinity"] == "ClientIP"
        && seconds.as_i64().is_some_and(|seconds| !(1..=AFFINITY_SECONDS_MAX).contains(&seconds))
    {
        let path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        let detail = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
        problems.invalid(path, seconds, &detail);
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    problems.one_of_if_set(spec, "spec", "ipFamilyPolicy", &policies);
    for (index, family) in list(spec, "ipFamilies").iter().enumerate() {
        // Without an address of its own, a service can be of any family.
        if family == "IPv6" && text(spec, "clusterIP") != "None" {
            let path = format!("spec.ipFamilies[{index}]");
            problems.invalid(&path, family, "not configured on this cluster");
        }
    }
    let address = text(spec, "clusterIP");
    if !matches!(address, "" | "None") && !is_address(address) {
        problems.invalid("spec.clusterIPs[0]", &address.into(), ADDRESS_DETAIL);
    } else if !matches!(address, "" | "None") && !address.starts_with(SERVICE_PREFIX) {
        let shown = format!("[]string{{{address:?}}}");
        let detail = format!(
            "failed to allocate IP {address}: the provided IP ({address}) is not in the valid \
             range. The range of valid IPs is {SERVICE_NETWORK}"
        );
        problems.invalid_text("spec.clusterIPs", &shown, &detail);
    }
    for (index, address) in list(spec, "externalIPs").iter().enumerate() {
        let path = format!("spec.externalIPs[{index}]");
        if is_address(address.as_str().unwrap_or_default()) {
            ingress::usable(address, &path, problems);
        } else {
            problems.invalid(&path, address, ADDRESS_DETAIL);
        }
    }
}

fn service_policies(spec: &Value, problems: &mut Problems) {
    if spec["type"] == "ClusterIP" {
        for (index, port) in list(spec, "ports").iter().enumerate() {
            if port["nodePort"].as_i64().unwrap_or_default() != 0 {
                let path = format!("spec.ports[{index}].nodePort");
                problems.forbidden(&path, "may not be used when `type` is 'ClusterIP'");
            }
        }
    }
    for (index, range) in list(spec, "loadBalancerSourceRanges").iter().enumerate() {
        // Upstream spells this one field with a capital.
        ingress::cidr(range, &format!("spec.LoadBalancerSourceRanges[{index}]"), problems);
    }
    let is_external = matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
        || (spec["type"] == "ClusterIP" && !is_empty(spec, "externalIPs"));
    if !is_external && !is_empty(spec, "externalTrafficPolicy") {
        problems.invalid(
            "spec.externalTrafficPolicy",
            &spec["externalTrafficPolicy"],
            "may only be set for externally-accessible services",
        );
    }
    if is_external {
        let policies = ["Cluster", "Local"];
        problems.one_of_if_set(spec, "spec", "externalTrafficPolicy", &policies);
    }
    problems.one_of_if_set(spec, "spec", "internalTrafficPolicy", &["Cluster", "Local"]);
}

fn service_ports(ports: &[Value], problems: &mut Problems) {
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
        if !port["targetPort"].is_null() {
            let path = format!("{path}.targetPort");
            containers::port_or_name(&port["targetPort"], &path, problems);
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
