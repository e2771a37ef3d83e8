//! Defaults of services, endpoint slices and network policies.

use serde_json::{Value, json};

use crate::fields::{fill, fill_text, is_empty, items_mut, object_at, object_mut, present_mut};

pub(super) fn apply(resource: &str, object: &mut Value) {
    match resource {
        "endpointslices" => {
            for port in items_mut(object, "ports") {
                fill(port, "name", "");
                fill(port, "protocol", "TCP");
            }
        }
        "networkpolicies" => network_policy(object),
        "ingressclasses" => {
            if let Some(parameters) =
                present_mut(object, "spec").and_then(|spec| present_mut(spec, "parameters"))
            {
                fill(parameters, "scope", "Cluster");
            }
        }
        _ => {}
    }
}

fn network_policy(object: &mut Value) {
    let Some(spec) = object_mut(object, "spec") else { return };
    if is_empty(spec, "policyTypes") {
        let both = !is_empty(spec, "egress");
        spec["policyTypes"] = if both { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    }
    for direction in ["ingress", "egress"] {
        for rule in items_mut(spec, direction) {
            items_mut(rule, "ports").for_each(|port| fill(port, "protocol", "TCP"));
        }
    }
}

pub(super) fn service(object: &mut Value) {
    let Some(spec) = object_mut(object, "spec") else { return };
    fill_text(spec, "sessionAffinity", "None");
    match spec["sessionAffinity"].as_str() {
        Some("None") => {
            spec.as_object_mut().and_then(|spec| spec.shift_remove("sessionAffinityConfig"));
        }
        Some("ClientIP") => {
            if let Some(client) = object_at(spec, &["sessionAffinityConfig", "clientIP"]) {
                fill(client, "timeoutSeconds", 10800);
            }
        }
        _ => {}
    }
    fill_text(spec, "type", "ClusterIP");
    for port in items_mut(spec, "ports") {
        fill_text(port, "protocol", "TCP");
        let target = port.get("targetPort").cloned().unwrap_or(Value::Null);
        if target.is_null() || target == 0 || target == "" {
            let number = port.get("port").cloned().unwrap_or(Value::from(0));
            fill(port, "targetPort", Value::Null);
            port["targetPort"] = number;
        }
    }
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    let is_external = matches!(kind.as_str(), "NodePort" | "LoadBalancer")
        || (kind == "ClusterIP" && !is_empty(spec, "externalIPs"));
    if is_external {
        fill_text(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
        if let Some(balancer) =
            present_mut(object, "status").and_then(|status| present_mut(status, "loadBalancer"))
        {
            for ingress in items_mut(balancer, "ingress") {
                if !is_empty(ingress, "ip") {
                    fill(ingress, "ipMode", "VIP");
                }
            }
        }
    }
}
