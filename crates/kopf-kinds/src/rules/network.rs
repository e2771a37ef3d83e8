//! Rules of services and their addresses.

use std::collections::HashSet;

use serde_json::Value;

use super::pod_spec::{check_label, check_port_number};
use super::{Problems, containers, go_text, ingress};
use crate::fields::{is_empty, list, text};
use crate::{FieldError, FieldErrorReason};

/// The error for a string that is not an address.
pub(super) const ADDRESS_DETAIL: &str =
    "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
/// The address range of services.
const SERVICE_NETWORK: &str = "10.96.0.0/16";
const SERVICE_PREFIX: &str = "10.96.";
const AFFINITY_SECONDS_MAX: i64 = 86_400;

pub(super) fn check(resource: &str, object: &Value, old: Option<&Value>, problems: &mut Problems) {
    match resource {
        "ingresses" => ingress::ingress(object, old.is_none(), problems),
        "ingressclasses" => ingress::class(&object["spec"], problems),
        "networkpolicies" => ingress::network_policy(&object["spec"], problems),
        "servicecidrs" => match old {
            Some(old) => ranges_update(&object["spec"], &old["spec"], problems),
            None => ranges(&object["spec"], problems),
        },
        "ipaddresses" => {
            address(&object["spec"], problems);
            let parent = &object["spec"]["parentRef"];
            if old.is_some_and(|old| old["spec"]["parentRef"] != *parent) {
                let shown = format!(
                    "networking.ParentReference{{Group:{:?}, Resource:{:?}, Namespace:{:?}, \
                     Name:{:?}}}",
                    text(parent, "group"),
                    text(parent, "resource"),
                    text(parent, "namespace"),
                    text(parent, "name"),
                );
                problems.invalid_text("spec.parentRef", &shown, "field is immutable");
            }
        }
        _ => {}
    }
}

/// Checks the address ranges of services: one of each family.
fn ranges(spec: &Value, problems: &mut Problems) {
    const PATH: &str = "spec.cidrs";
    let ranges = list(spec, "cidrs");
    let shown = go_text::string_list(&spec["cidrs"]);
    if ranges.is_empty() {
        problems.required(PATH, "at least one CIDR required");
        return;
    }
    if ranges.len() > 2 {
        let shown = format!("networking.ServiceCIDRSpec{{CIDRs:{shown}}}");
        problems.invalid_text(PATH, &shown, "may only hold up to 2 values");
        return;
    }
    for (index, range) in ranges.iter().enumerate() {
        let path = format!("{PATH}[{index}]");
        ingress::cidr(range, &path, problems);
        if has_host_bits(range.as_str().unwrap_or_default()) {
            problems.invalid(&path, range, "must not have bits set beyond the prefix length");
        }
    }
    let families: Vec<Option<bool>> =
        ranges.iter().map(|range| ingress::is_wide(range.as_str().unwrap_or_default())).collect();
    if families.len() == 2 && families[0].is_some() && families[0] == families[1] {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and \
                      2001:db8::/64";
        problems.invalid_text(PATH, &shown, detail);
    }
}

/// Whether a range names an address in it instead of its first one.
fn has_host_bits(range: &str) -> bool {
    use std::net::IpAddr;
    let Some((address, length)) = range.split_once('/') else { return false };
    let (Ok(address), Ok(length)) = (address.parse::<IpAddr>(), length.parse::<u32>()) else {
        return false;
    };
    match address {
        IpAddr::V4(it) if length <= 32 => it.to_bits().checked_shl(length).unwrap_or(0) != 0,
        IpAddr::V6(it) if length <= 128 => it.to_bits().checked_shl(length).unwrap_or(0) != 0,
        _ => false,
    }
}

/// A range is immutable; a second one may be added.
fn ranges_update(spec: &Value, old: &Value, problems: &mut Problems) {
    let (new, before) = (list(spec, "cidrs"), list(old, "cidrs"));
    let is_added = before.len() == 1 && new.len() == 2;
    if new.len() != before.len() && !is_added {
        let shown = go_text::string_list(&spec["cidrs"]);
        problems.invalid_text("spec.cidrs", &shown, "field is immutable");
        return;
    }
    for (index, (new, old)) in new.iter().zip(before).enumerate() {
        problems.immutable(&format!("spec.cidrs[{index}]"), new, old);
    }
    if is_added {
        ranges(spec, problems);
    }
}

/// Checks the owner of an address.
fn address(spec: &Value, problems: &mut Problems) {
    let parent = &spec["parentRef"];
    let path = "spec.parentRef";
    if !parent.is_object() {
        problems.required(path, "");
        return;
    }
    if !is_empty(parent, "group") {
        for problem in crate::names::subdomain_problems(text(parent, "group")) {
            problems.invalid(&format!("{path}.group"), &parent["group"], &problem);
        }
    }
    for field in ["resource", "name", "namespace"] {
        if is_empty(parent, field) && field != "namespace" {
            problems.required(&format!("{path}.{field}"), "");
        }
        for problem in crate::names::path_segment_problems(text(parent, field)) {
            problems.invalid(&format!("{path}.{field}"), &parent[field], &problem);
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

pub(super) fn service(object: &Value, is_new: bool, is_dry_run: bool, problems: &mut Problems) {
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
                for problem in crate::names::subdomain_problems(name) {
                    problems.invalid("spec.externalName", &name.into(), &problem);
                }
            }
        }
        _ => {}
    }
    service_ports(ports, problems);
    crate::meta::validate_labels(&spec["selector"], "spec.selector", &mut problems.found);
    service_addresses(spec, is_new, is_dry_run, problems);
    problems.one_of(
        "spec.type",
        &spec["type"],
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
    );
    service_policies(spec, problems);
}

fn service_addresses(spec: &Value, is_new: bool, is_dry_run: bool, problems: &mut Problems) {
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
    let is_headless = text(spec, "clusterIP") == "None";
    if spec["ipFamilyPolicy"] == "RequireDualStack"
        && spec["type"] != "ExternalName"
        && !(is_headless && is_empty(spec, "selector"))
    {
        let detail = "this cluster is not configured for dual-stack services";
        problems.invalid("spec.ipFamilyPolicy", &spec["ipFamilyPolicy"], detail);
    }
    address_lists(spec, problems);
    for (index, family) in list(spec, "ipFamilies").iter().enumerate() {
        let address = &spec["clusterIPs"][index];
        // A service without its own address can be of any family.
        if family != "IPv6" || is_headless {
            continue;
        }
        if is_new || !is_address(address.as_str().unwrap_or_default()) {
            let path = format!("spec.ipFamilies[{index}]");
            problems.invalid(&path, family, "not configured on this cluster");
        } else {
            let detail = format!("expected an IPv6 value as indicated by `ipFamilies[{index}]`");
            problems.invalid(&format!("spec.clusterIPs[{index}]"), address, &detail);
        }
    }
    let address = text(spec, "clusterIP");
    if !matches!(address, "" | "None") && !is_address(address) {
        problems.invalid("spec.clusterIPs[0]", &address.into(), ADDRESS_DETAIL);
    } else if !matches!(address, "" | "None") && !address.starts_with(SERVICE_PREFIX) {
        let shown = format!("[]string{{{address:?}}}");
        let reason = match is_dry_run {
            true => format!(
                "the provided IP ({address}) is not in the valid range. The range of valid IPs is \
                 {SERVICE_NETWORK}"
            ),
            false => "the provided network does not match the current range".to_owned(),
        };
        let detail = format!("failed to allocate IP {address}: {reason}");
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

/// Checks the lists of addresses and families of a service.
fn address_lists(spec: &Value, problems: &mut Problems) {
    const FORBIDDEN: &str = "may not be set for ExternalName services";
    if spec["type"] == "ExternalName" {
        if !is_empty(spec, "clusterIP") || !is_empty(spec, "clusterIPs") {
            problems.forbidden("spec.clusterIPs", FORBIDDEN);
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if !is_empty(spec, field) {
                problems.forbidden(&format!("spec.{field}"), FORBIDDEN);
            }
        }
        return;
    }
    let addresses = list(spec, "clusterIPs");
    let shown = go_text::string_list(&spec["clusterIPs"]);
    if is_empty(spec, "clusterIP") && !addresses.is_empty() {
        let detail = "must be empty when `clusterIP` is not specified";
        problems.invalid_text("spec.clusterIPs", &shown, detail);
    }
    if addresses.len() > 1 && addresses[0] == "None" {
        let detail = "'None' must be the first and only value";
        problems.invalid_text("spec.clusterIPs", &shown, detail);
    }
    let families = list(spec, "ipFamilies");
    for (index, family) in families.iter().enumerate() {
        let path = format!("spec.ipFamilies[{index}]");
        problems.one_of(&path, family, &["IPv4", "IPv6"]);
        if families[..index].contains(family) {
            problems.duplicate(&path, family);
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
        // Upstream capitalizes this field.
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
    balancer_policies(spec, problems);
    if !is_empty(spec, "trafficDistribution") {
        problems.one_of("spec.trafficDistribution", &spec["trafficDistribution"], &["PreferClose"]);
    }
}

/// Checks fields that only load balancers may have.
fn balancer_policies(spec: &Value, problems: &mut Problems) {
    let is_balancer = spec["type"] == "LoadBalancer";
    let only = "may only be used when `type` is 'LoadBalancer'";
    if !is_balancer && !is_empty(spec, "loadBalancerSourceRanges") {
        // Upstream capitalizes this field.
        problems.forbidden("spec.LoadBalancerSourceRanges", only);
    }
    let class = text(spec, "loadBalancerClass");
    if !is_balancer && !class.is_empty() {
        problems.forbidden("spec.loadBalancerClass", only);
    } else if !class.is_empty() {
        for problem in crate::names::qualified_name_problems(class) {
            problems.invalid("spec.loadBalancerClass", &class.into(), &problem);
        }
    }
    if !is_balancer && !spec["allocateLoadBalancerNodePorts"].is_null() {
        problems.forbidden("spec.allocateLoadBalancerNodePorts", only);
    }
    let is_checked = is_balancer && spec["externalTrafficPolicy"] == "Local";
    let check = &spec["healthCheckNodePort"];
    if !is_checked && check.as_i64().unwrap_or_default() != 0 {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is \
                      'Local'";
        problems.invalid("spec.healthCheckNodePort", check, detail);
    }
}

/// Checks that node ports are in range; upstream does so when it allocates them.
pub(super) fn node_ports(spec: &Value, problems: &mut Problems) {
    for (index, port) in list(spec, "ports").iter().enumerate() {
        let number = port["nodePort"].as_i64().unwrap_or_default();
        if number != 0 && spec["type"] != "ClusterIP" && !(30000..=32767).contains(&number) {
            problems.invalid(
                &format!("spec.ports[{index}].nodePort"),
                &port["nodePort"],
                "provided port is not in the valid range. The range of valid ports is 30000-32767",
            );
        }
    }
}

fn service_ports(ports: &[Value], problems: &mut Problems) {
    let mut names = HashSet::new();
    let mut numbers = HashSet::new();
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        let name = text(port, "name");
        if name.is_empty() && ports.len() > 1 {
            problems.required(&format!("{path}.name"), "");
        } else if !name.is_empty() {
            let before = problems.found.len();
            check_label(name, &format!("{path}.name"), problems);
            if problems.found.len() == before && !names.insert(name) {
                problems.duplicate(&format!("{path}.name"), &port["name"]);
            }
        }
        check_port_number(&port["port"], &format!("{path}.port"), problems);
        let protocols = ["SCTP", "TCP", "UDP"];
        problems.one_of(&format!("{path}.protocol"), &port["protocol"], &protocols);
        if let Some(protocol) = port["appProtocol"].as_str() {
            for problem in crate::names::qualified_name_problems(protocol) {
                problems.invalid(&format!("{path}.appProtocol"), &protocol.into(), &problem);
            }
        }
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
    let is_balancer = |spec: &Value| spec["type"] == "LoadBalancer";
    let class = "spec.loadBalancerClass";
    if is_balancer(spec) && is_balancer(old_spec) {
        if spec["loadBalancerClass"] != old_spec["loadBalancerClass"] {
            problems.invalid(class, &spec["loadBalancerClass"], "may not change once set");
        }
    } else if !is_balancer(spec) && !spec["loadBalancerClass"].is_null() {
        // Upstream checks this twice.
        problems.forbidden(class, "may only be used when `type` is 'LoadBalancer'");
    }
    if text(spec, "type") == "ExternalName" || text(old_spec, "type") == "ExternalName" {
        return;
    }
    let (new, before) = (text(spec, "clusterIP"), text(old_spec, "clusterIP"));
    // Upstream reports a text that is no address only as such.
    let is_comparable = new.is_empty() || new == "None" || new.parse::<std::net::IpAddr>().is_ok();
    if new != before && !before.is_empty() && is_comparable {
        let shown = go_text::string_list(&spec["clusterIPs"]);
        problems.invalid_text("spec.clusterIPs[0]", &shown, "may not change once set");
    }
}
