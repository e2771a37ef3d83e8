//! Rows of services, endpoints, ingresses and network policies.

use serde_json::{Value, json};

use super::Row;
use super::format::{at_most, labels, list, selector};

/// How many hosts, ports or addresses a cell shows.
const SHOWN_MAX: usize = 3;

pub(super) fn cells(resource: &str, row: &Row<'_>) -> Option<Vec<Value>> {
    Some(match resource {
        "services" => service(row),
        "endpoints" => vec![row.name(), json!(endpoints(row)), row.age()],
        "endpointslices" => endpoint_slice(row),
        "ingresses" => ingress(row),
        "ingressclasses" => ingress_class(row),
        "networkpolicies" => {
            vec![row.name(), json!(selector(row.value("/spec/podSelector"))), row.age()]
        }
        "servicecidrs" => {
            let ranges = list(row.value("/spec/cidrs")).iter().filter_map(Value::as_str);
            vec![row.name(), json!(ranges.collect::<Vec<_>>().join(",")), row.age()]
        }
        "ipaddresses" => vec![row.name(), json!(parent(row)), row.age()],
        _ => return None,
    })
}

fn texts(items: &[Value]) -> Vec<&str> {
    items.iter().filter_map(Value::as_str).collect()
}

fn service(row: &Row<'_>) -> Vec<Value> {
    let ports: Vec<String> = row
        .list("/spec/ports")
        .iter()
        .map(|port| {
            let number = |field: &str| port[field].as_i64().unwrap_or_default();
            let protocol = port["protocol"].as_str().unwrap_or_default();
            match number("nodePort") {
                0 => format!("{}/{protocol}", number("port")),
                node_port => format!("{}:{node_port}/{protocol}", number("port")),
            }
        })
        .collect();
    let ports = if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") };
    vec![
        row.name(),
        json!(row.text("/spec/type")),
        row.text_or("/spec/clusterIPs/0", "<none>"),
        json!(external_address(row)),
        json!(ports),
        row.age(),
        json!(labels(row.value("/spec/selector"))),
    ]
}

fn external_address(row: &Row<'_>) -> String {
    let external = texts(row.list("/spec/externalIPs")).join(",");
    let balanced = load_balancer_addresses(row);
    match row.text("/spec/type") {
        "ClusterIP" | "NodePort" if external.is_empty() => "<none>".into(),
        "ClusterIP" | "NodePort" => external,
        "LoadBalancer" => match (balanced.as_str(), external.as_str()) {
            ("", "") => "<pending>".into(),
            (balanced, "") => balanced.to_owned(),
            ("", external) => external.to_owned(),
            (balanced, external) => format!("{balanced},{external}"),
        },
        "ExternalName" => row.text("/spec/externalName").to_owned(),
        _ => "<unknown>".into(),
    }
}

fn load_balancer_addresses(row: &Row<'_>) -> String {
    let mut addresses: Vec<&str> = row
        .list("/status/loadBalancer/ingress")
        .iter()
        .filter_map(|ingress| {
            let text = |field: &str| ingress[field].as_str().filter(|text| !text.is_empty());
            text("ip").or_else(|| text("hostname"))
        })
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses.join(",")
}

fn endpoints(row: &Row<'_>) -> String {
    let mut found = Vec::new();
    for subset in row.list("/subsets") {
        let addresses = list(&subset["addresses"]).iter().filter_map(|one| one["ip"].as_str());
        let ports = list(&subset["ports"]);
        if ports.is_empty() {
            found.extend(addresses.clone().map(str::to_owned));
        }
        for port in ports {
            let port = port["port"].as_i64().unwrap_or_default();
            found.extend(addresses.clone().map(|address| {
                if address.contains(':') {
                    format!("[{address}]:{port}")
                } else {
                    format!("{address}:{port}")
                }
            }));
        }
    }
    let none = if row.list("/subsets").is_empty() { "<none>" } else { "" };
    at_most(&found, SHOWN_MAX, none)
}

fn endpoint_slice(row: &Row<'_>) -> Vec<Value> {
    let ports: Vec<String> = row
        .list("/ports")
        .iter()
        .map(|port| match (port["port"].as_i64(), port["name"].as_str()) {
            (Some(number), _) => number.to_string(),
            (None, Some(name)) => name.to_owned(),
            (None, None) => "*".to_owned(),
        })
        .collect();
    let addresses: Vec<String> = row
        .list("/endpoints")
        .iter()
        .flat_map(|endpoint| texts(list(&endpoint["addresses"])))
        .map(str::to_owned)
        .collect();
    let cell = |items: &[String]| match at_most(items, SHOWN_MAX, "").as_str() {
        "" => json!("<unset>"),
        shown => json!(shown),
    };
    vec![row.name(), json!(row.text("/addressType")), cell(&ports), cell(&addresses), row.age()]
}

fn ingress(row: &Row<'_>) -> Vec<Value> {
    let hosts: Vec<String> = row
        .list("/spec/rules")
        .iter()
        .filter_map(|rule| rule["host"].as_str().filter(|host| !host.is_empty()))
        .map(str::to_owned)
        .collect();
    let ports = if row.list("/spec/tls").is_empty() { "80" } else { "80, 443" };
    vec![
        row.name(),
        row.text_or("/spec/ingressClassName", "<none>"),
        json!(at_most(&hosts, SHOWN_MAX, "*")),
        json!(load_balancer_addresses(row)),
        json!(ports),
        row.age(),
    ]
}

fn ingress_class(row: &Row<'_>) -> Vec<Value> {
    let parameters = match row.value("/spec/parameters") {
        Value::Null => "<none>".to_owned(),
        parameters => {
            let text = |field: &str| parameters[field].as_str();
            let group = text("apiGroup").map(|group| format!(".{group}")).unwrap_or_default();
            let kind = text("kind").unwrap_or_default();
            format!("{kind}{group}/{}", text("name").unwrap_or_default())
        }
    };
    vec![row.name(), json!(row.text("/spec/controller")), json!(parameters), row.age()]
}

fn parent(row: &Row<'_>) -> String {
    let text = |field: &str| row.text(&format!("/spec/parentRef/{field}"));
    if row.value("/spec/parentRef").is_null() {
        return "<none>".into();
    }
    let dot = if text("group").is_empty() { "" } else { "." };
    let mut parent = format!("{}{dot}{}", text("resource"), text("group")).to_lowercase();
    for part in [text("namespace"), text("name")] {
        if !part.is_empty() {
            parent = format!("{parent}/{part}");
        }
    }
    parent
}
