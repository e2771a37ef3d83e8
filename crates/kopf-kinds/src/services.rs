//! Server-side defaults of services: cluster addresses, IP families and node ports.
//!
//! Addresses are taken from one range, starting at an offset from the server's id source, so that a
//! freed address is not reused at once. The addresses in use are read from the snapshot: forks and
//! restored servers need no allocator state.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::KindContext;
use super::fields::{fill, is_empty, items_mut, list, text};

/// The first address of the service range; the range has [`ADDRESSES_MAX`] addresses.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 0);
const ADDRESSES_MAX: u32 = 1 << 16;
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30000..=32767;

/// Assigns addresses and ports to a new service.
pub(super) fn prepare_create(context: &KindContext<'_>, object: &mut Value) {
    object["status"] = json!({"loadBalancer": {}});
    allocate(context, object);
}

/// Carries over the values that the server chose before, and allocates those that a changed type
/// needs.
pub(super) fn prepare_update(context: &KindContext<'_>, object: &mut Value, old: &Value) {
    if !context.subresource.is_empty() {
        return;
    }
    if text(&object["spec"], "type") != "LoadBalancer" && object["status"].is_object() {
        object["status"]["loadBalancer"] = json!({});
    }
    let (Some(spec), Some(old_spec)) = (object.get_mut("spec"), old.get("spec")) else { return };
    drop_fields_of_old_type(spec, old_spec);
    let is_external_name = text(spec, "type") == "ExternalName";
    if is_external_name {
        release(spec);
        return;
    }
    if text(old_spec, "type") != "ExternalName" {
        // Clients that know only the older, single field mean both.
        let is_given = !is_empty(spec, "clusterIP") && spec["clusterIP"] != old_spec["clusterIP"];
        if is_given && spec["clusterIPs"] == old_spec["clusterIPs"] {
            spec["clusterIPs"] = json!([spec["clusterIP"]]);
        }
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if is_empty(spec, field)
                && let Some(value) = old_spec.get(field)
            {
                spec[field] = value.clone();
            }
        }
    }
    if has_node_ports(spec) && has_node_ports(old_spec) {
        let old_ports = list(old_spec, "ports");
        for port in items_mut(spec, "ports") {
            let same = old_ports.iter().find(|old| {
                text(old, "name") == text(port, "name")
                    && old["port"] == port["port"]
                    && old["protocol"] == port["protocol"]
            });
            if let Some(number) = same.and_then(|old| old.get("nodePort"))
                && port.get("nodePort").is_none_or(|number| number.is_null() || *number == 0)
            {
                port["nodePort"] = number.clone();
            }
        }
    }
    allocate(context, object);
}

/// Clears fields that only the old type used, unless the client changed them as well.
fn drop_fields_of_old_type(spec: &mut Value, old: &Value) {
    let is_balanced = text(spec, "type") == "LoadBalancer";
    let is_external = matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
        || (text(spec, "type") == "ClusterIP" && !is_empty(spec, "externalIPs"));
    let numbers = |spec: &Value| -> HashSet<i64> {
        list(spec, "ports").iter().filter_map(|port| port["nodePort"].as_i64()).collect()
    };
    let is_kept = numbers(spec) == numbers(old);
    if has_node_ports(old) && !has_node_ports(spec) && is_kept {
        for port in items_mut(spec, "ports") {
            port.as_object_mut().and_then(|port| port.shift_remove("nodePort"));
        }
    }
    let text_of_affinity = text(spec, "sessionAffinity").to_owned();
    let Some(fields) = spec.as_object_mut() else { return };
    for (field, is_used) in [
        ("externalTrafficPolicy", is_external),
        ("healthCheckNodePort", is_balanced),
        ("allocateLoadBalancerNodePorts", is_balanced),
        ("loadBalancerClass", is_balanced),
        ("sessionAffinityConfig", text_of_affinity == "ClientIP"),
    ] {
        if !is_used && fields.get(field) == old.get(field) {
            fields.shift_remove(field);
        }
    }
}

fn release(spec: &mut Value) {
    let Some(fields) = spec.as_object_mut() else { return };
    for field in
        ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]
    {
        fields.shift_remove(field);
    }
    for port in items_mut(spec, "ports") {
        port.as_object_mut().and_then(|port| port.shift_remove("nodePort"));
    }
}

fn has_node_ports(spec: &Value) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)),
        _ => false,
    }
}

fn allocate(context: &KindContext<'_>, object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    if text(spec, "type") == "ExternalName" {
        return;
    }
    let services = context.objects.list_with_pending("services");
    let specs = || services.iter().map(|service| &service.content()["spec"]);
    // A list without the older, single field is rejected later.
    if is_empty(spec, "clusterIP") && is_empty(spec, "clusterIPs") {
        let taken: HashSet<&str> = specs().map(|spec| text(spec, "clusterIP")).collect();
        // A dry run takes no address, and shows that of the range instead.
        let address = match context.is_dry_run {
            true => Some(FIRST_ADDRESS.to_string()),
            false => free_address(&taken, context.ids.number()),
        };
        if let Some(address) = address {
            spec["clusterIP"] = address.into();
        }
    }
    if is_empty(spec, "clusterIPs") {
        spec["clusterIPs"] = json!([spec["clusterIP"]]);
    }
    let is_headless = text(spec, "clusterIP") == "None";
    if is_headless && is_empty(spec, "selector") {
        // The families of the endpoints are unknown.
        fill(spec, "ipFamilyPolicy", "RequireDualStack");
        fill(spec, "ipFamilies", json!(["IPv4", "IPv6"]));
    } else {
        fill(spec, "ipFamilies", json!(["IPv4"]));
        fill(spec, "ipFamilyPolicy", "SingleStack");
    }
    if has_node_ports(spec) {
        let ports = specs().flat_map(|spec| list(spec, "ports"));
        let mut taken: HashSet<i64> = ports.filter_map(|port| port["nodePort"].as_i64()).collect();
        allocate_node_ports(spec, &mut taken, context.ids.number());
        let is_checked =
            text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local";
        if is_checked && spec["healthCheckNodePort"].as_i64().unwrap_or_default() == 0 {
            let port = free_node_port(&taken, context.ids.number());
            spec["healthCheckNodePort"] = port.into();
        }
    }
}

fn free_address(taken: &HashSet<&str>, seed: u64) -> Option<String> {
    let first = u32::from(FIRST_ADDRESS);
    let start = u32::try_from(seed % u64::from(ADDRESSES_MAX)).unwrap_or_default();
    // Skips the network's own address and the next one, which belongs to the API server.
    let offsets = (0..ADDRESSES_MAX).map(|step| (start + step) % ADDRESSES_MAX);
    let mut candidates = offsets
        .filter(|offset| *offset > 1)
        .map(|offset| Ipv4Addr::from(first + offset).to_string());
    candidates.find(|address| !taken.contains(address.as_str()))
}

fn allocate_node_ports(spec: &mut Value, taken: &mut HashSet<i64>, seed: u64) {
    // A node port may be used for TCP and UDP of the same port.
    let mut chosen: Vec<(i64, String, i64)> = Vec::new();
    for port in items_mut(spec, "ports") {
        if port.get("nodePort").and_then(Value::as_i64).unwrap_or_default() != 0 {
            continue;
        }
        let number = port["port"].as_i64().unwrap_or_default();
        let protocol = text(port, "protocol").to_owned();
        let shared = chosen
            .iter()
            .find(|(same, other, _)| *same == number && *other != protocol)
            .map(|(_, _, node_port)| *node_port);
        let Some(node_port) = shared.or_else(|| free_node_port(taken, seed)) else { return };
        taken.insert(node_port);
        chosen.push((number, protocol, node_port));
        port["nodePort"] = node_port.into();
    }
}

fn free_node_port(taken: &HashSet<i64>, seed: u64) -> Option<i64> {
    let size = NODE_PORTS.end() - NODE_PORTS.start() + 1;
    let start = i64::try_from(seed % size.unsigned_abs()).unwrap_or_default();
    let mut ports = (0..size).map(|step| NODE_PORTS.start() + (start + step) % size);
    ports.find(|port| !taken.contains(port))
}
