//! Rows of miscellaneous kinds.

use serde_json::{Value, json};

use super::Row;
use super::format::{labels, list};

pub(super) fn cells(group: &str, resource: &str, row: &Row<'_>) -> Option<Vec<Value>> {
    Some(match (group, resource) {
        ("", "configmaps") => {
            let count = row.size("/data") + row.size("/binaryData");
            vec![row.name(), json!(count), row.age()]
        }
        ("", "secrets") => {
            vec![row.name(), json!(row.text("/type")), json!(row.size("/data")), row.age()]
        }
        ("", "serviceaccounts") => vec![row.name(), json!(row.size("/secrets")), row.age()],
        ("", "namespaces") => vec![row.name(), json!(row.text("/status/phase")), row.age()],
        ("", "nodes") => node(row),
        ("", "events") => event(row, "/involvedObject", "/source"),
        ("events.k8s.io", "events") => event(row, "/regarding", "/deprecatedSource"),
        ("", "resourcequotas") => quota(row),
        ("", "podtemplates") => {
            let [names, images] = row.containers("/template/spec");
            vec![row.name(), names, images, json!(labels(row.value("/template/metadata/labels")))]
        }
        ("", "componentstatuses") => component_status(row),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => binding(row),
        ("coordination.k8s.io", "leases") => {
            vec![row.name(), json!(row.text("/spec/holderIdentity")), row.age()]
        }
        ("scheduling.k8s.io", "priorityclasses") => vec![
            row.name(),
            json!(row.count("/value")),
            json!(row.flag_or("/globalDefault", false)),
            row.age(),
            json!(row.text("/preemptionPolicy")),
        ],
        ("node.k8s.io", "runtimeclasses") => {
            vec![row.name(), json!(row.text("/handler")), row.age()]
        }
        ("admissionregistration.k8s.io", _) => return admission(resource, row),
        ("certificates.k8s.io", "certificatesigningrequests") => signing_request(row),
        ("apiregistration.k8s.io", "apiservices") => api_service(row),
        ("flowcontrol.apiserver.k8s.io", _) => return flow_control(resource, row),
        _ => return None,
    })
}

fn node(row: &Row<'_>) -> Vec<Value> {
    let mut status = match row.condition("Ready") {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if row.flag_or("/spec/unschedulable", false) {
        status.push_str(",SchedulingDisabled");
    }
    let address = |kind: &str| {
        let addresses = row.list("/status/addresses").iter();
        let found = addresses.into_iter().find(|address| address["type"] == kind);
        found.and_then(|address| address["address"].as_str()).unwrap_or("<none>").to_owned()
    };
    vec![
        row.name(),
        json!(status),
        json!(roles(row.value("/metadata/labels"))),
        row.age(),
        json!(row.text("/status/nodeInfo/kubeletVersion")),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        row.text_or("/status/nodeInfo/osImage", "<unknown>"),
        row.text_or("/status/nodeInfo/kernelVersion", "<unknown>"),
        row.text_or("/status/nodeInfo/containerRuntimeVersion", "<unknown>"),
    ]
}

fn roles(labels: &Value) -> String {
    let mut roles: Vec<&str> = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        let role = match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => role,
            None if key == "kubernetes.io/role" => value.as_str().unwrap_or_default(),
            None => continue,
        };
        if !role.is_empty() {
            roles.push(role);
        }
    }
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { "<none>".into() } else { roles.join(",") }
}

/// Events exist in two groups with different names for the same fields.
fn event(row: &Row<'_>, about: &str, source: &str) -> Vec<Value> {
    let first_of = |pointers: &[&str]| {
        let found = pointers.iter().find(|pointer| !row.text(pointer).is_empty());
        found.map_or_else(|| "<unknown>".to_owned(), |pointer| row.since(pointer))
    };
    let first = first_of(&["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"]);
    let has_series = row.value("/series").is_object();
    let last = if has_series {
        row.since("/series/lastObservedTime")
    } else {
        match first_of(&["/lastTimestamp", "/deprecatedLastTimestamp"]).as_str() {
            "<unknown>" => first.clone(),
            last => last.to_owned(),
        }
    };
    let count = if has_series {
        row.count("/series/count")
    } else {
        (row.count("/count") + row.count("/deprecatedCount")).max(1)
    };
    let kind = row.text(&format!("{about}/kind")).to_lowercase();
    let target = match row.text(&format!("{about}/name")) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let message =
        if row.text("/message").is_empty() { row.text("/note") } else { row.text("/message") };
    vec![
        json!(last),
        json!(row.text("/type")),
        json!(row.text("/reason")),
        json!(target),
        json!(row.text(&format!("{about}/fieldPath"))),
        json!(event_source(row, source)),
        json!(message.trim()),
        json!(first),
        json!(count),
        row.name(),
    ]
}

fn event_source(row: &Row<'_>, source: &str) -> String {
    let first = |pointers: [&str; 3]| {
        pointers.into_iter().map(|pointer| row.text(pointer)).find(|text| !text.is_empty())
    };
    let component =
        first([&format!("{source}/component"), "/reportingComponent", "/reportingController"]);
    let host = first([&format!("{source}/host"), "/reportingInstance", ""]);
    match (component.unwrap_or_default(), host.unwrap_or_default()) {
        (component, "") => component.to_owned(),
        (component, host) => format!("{component}, {host}"),
    }
}

fn quota(row: &Row<'_>) -> Vec<Value> {
    let hard = row.value("/status/hard").as_object();
    let mut names: Vec<&String> = hard.into_iter().flat_map(serde_json::Map::keys).collect();
    names.sort_unstable();
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for name in names {
        let amount = |place: &str| {
            row.value(place).get(name).and_then(Value::as_str).unwrap_or("0").to_owned()
        };
        let text = format!("{name}: {}/{}", amount("/status/used"), amount("/status/hard"));
        if name.starts_with("limits.") { limits.push(text) } else { requests.push(text) }
    }
    vec![row.name(), json!(requests.join(", ")), json!(limits.join(", ")), row.age()]
}

fn component_status(row: &Row<'_>) -> Vec<Value> {
    let healthy = row.list("/conditions").iter().find(|condition| condition["type"] == "Healthy");
    let text = |field: &str| healthy.and_then(|one| one[field].as_str()).unwrap_or_default();
    let status = match text("status") {
        "True" => "Healthy",
        "False" => "Unhealthy",
        _ => "Unknown",
    };
    vec![row.name(), json!(status), json!(text("message")), json!(text("error"))]
}

fn binding(row: &Row<'_>) -> Vec<Value> {
    let role = format!("{}/{}", row.text("/roleRef/kind"), row.text("/roleRef/name"));
    let subjects = |kind: &str| {
        let subjects = row.list("/subjects").iter().filter(|subject| subject["kind"] == kind);
        let names = subjects.map(|subject| {
            let name = subject["name"].as_str().unwrap_or_default();
            let namespace = subject["namespace"].as_str().unwrap_or_default();
            if kind == "ServiceAccount" { format!("{namespace}/{name}") } else { name.to_owned() }
        });
        json!(names.collect::<Vec<_>>().join(", "))
    };
    let people = [subjects("User"), subjects("Group"), subjects("ServiceAccount")];
    [row.name(), json!(role), row.age()].into_iter().chain(people).collect()
}

fn admission(resource: &str, row: &Row<'_>) -> Option<Vec<Value>> {
    Some(match resource {
        "validatingwebhookconfigurations" | "mutatingwebhookconfigurations" => {
            vec![row.name(), json!(row.size("/webhooks")), row.age()]
        }
        "validatingadmissionpolicies" => {
            let parameter = match row.value("/spec/paramKind") {
                Value::Null => "<unset>".to_owned(),
                kind => {
                    let text = |field: &str| kind[field].as_str().unwrap_or_default().to_owned();
                    format!("{}/{}", text("apiVersion"), text("kind"))
                }
            };
            vec![row.name(), json!(row.size("/spec/validations")), json!(parameter), row.age()]
        }
        "validatingadmissionpolicybindings" => {
            let name = row.text("/spec/paramRef/name");
            let parameter = match (name, row.text("/spec/paramRef/namespace")) {
                ("", _) => "<unset>".to_owned(),
                (name, "") => format!("*/{name}"),
                (name, namespace) => format!("{namespace}/{name}"),
            };
            vec![row.name(), json!(row.text("/spec/policyName")), json!(parameter), row.age()]
        }
        _ => return None,
    })
}

fn signing_request(row: &Row<'_>) -> Vec<Value> {
    let has = |kind: &str| row.condition(kind).is_some();
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !row.text("/status/certificate").is_empty() {
        status.push_str(",Issued");
    }
    let duration = row.value("/spec/expirationSeconds").as_i64();
    vec![
        row.name(),
        row.age(),
        row.text_or("/spec/signerName", "<none>"),
        json!(row.text("/spec/username")),
        json!(duration.map_or_else(|| "<none>".to_owned(), super::age::human)),
        json!(status),
    ]
}

fn api_service(row: &Row<'_>) -> Vec<Value> {
    let service = match row.value("/spec/service") {
        Value::Null => "Local".to_owned(),
        _ => format!("{}/{}", row.text("/spec/service/namespace"), row.text("/spec/service/name")),
    };
    let conditions = list(row.value("/status/conditions"));
    let available = match conditions.iter().find(|condition| condition["type"] == "Available") {
        Some(condition) if condition["status"] == "True" => "True".to_owned(),
        Some(condition) => {
            let text = |field: &str| condition[field].as_str().unwrap_or_default();
            format!("{} ({})", text("status"), text("reason"))
        }
        None => "Unknown".to_owned(),
    };
    vec![row.name(), json!(service), json!(available), row.age()]
}

fn flow_control(resource: &str, row: &Row<'_>) -> Option<Vec<Value>> {
    let or_none = |pointer: &str| match row.value(pointer) {
        Value::Null => json!("<none>"),
        value => value.clone(),
    };
    Some(match resource {
        "flowschemas" => vec![
            row.name(),
            json!(row.text("/spec/priorityLevelConfiguration/name")),
            json!(row.count("/spec/matchingPrecedence")),
            row.text_or("/spec/distinguisherMethod/type", "<none>"),
            row.age(),
            json!(row.condition("Dangling").unwrap_or("?")),
        ],
        "prioritylevelconfigurations" => vec![
            row.name(),
            json!(row.text("/spec/type")),
            or_none("/spec/limited/nominalConcurrencyShares"),
            or_none("/spec/limited/limitResponse/queuing/queues"),
            or_none("/spec/limited/limitResponse/queuing/handSize"),
            or_none("/spec/limited/limitResponse/queuing/queueLengthLimit"),
            row.age(),
        ],
        _ => return None,
    })
}
