//! The usage of ResourceQuotas: counts, amounts and scopes.

use std::collections::BTreeMap;

use kopf_apimachinery::fields::{at, items, number, text, texts};
use kopf_apimachinery::quantity::Quantity;
use kopf_apimachinery::status_error::qualified;
use serde_json::Value;

/// Amounts by the name of the resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// Resources that are counted under their own name, besides `count/...`.
const COUNTED: [&str; 7] = [
    "pods",
    "services",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
];

/// The usage in a quota's namespace of the resources that it limits; `each` visits the objects of a
/// table.
pub fn usage(quota: &Value, each: impl Fn(&str, &mut dyn FnMut(&Value))) -> Amounts {
    let mut used: Amounts = amounts(at(quota, &["spec", "hard"]))
        .into_keys()
        .map(|name| (name, Quantity::count(0)))
        .collect();
    let tables: Vec<String> = used.keys().map(|name| table_of(name)).collect();
    for table in tables.iter().collect::<std::collections::BTreeSet<_>>() {
        each(table, &mut |object| {
            if !is_in_scopes(quota, table, object) || is_over(table, object) {
                return;
            }
            for (name, amount) in charge(table, object) {
                if table_of(&name) == *table
                    && let Some(sum) = used.get_mut(&name)
                {
                    *sum = amount.plus(*sum);
                }
            }
        });
    }
    used
}

/// The table of the objects that count towards a resource.
fn table_of(name: &str) -> String {
    if let Some(counted) = name.strip_prefix("count/") {
        return counted.to_owned();
    }
    match name {
        "services.nodeports" | "services.loadbalancers" => "services".to_owned(),
        "requests.storage" => "persistentvolumeclaims".to_owned(),
        _ if COUNTED.contains(&name) => name.to_owned(),
        _ if name.contains(".storageclass.storage.k8s.io/") => "persistentvolumeclaims".to_owned(),
        _ => "pods".to_owned(),
    }
}

/// Finished pods no longer count.
fn is_over(table: &str, object: &Value) -> bool {
    table == "pods" && matches!(text(object, &["status", "phase"]), "Succeeded" | "Failed")
}

/// The usage of an object, by resource names of quotas.
pub fn charge(table: &str, object: &Value) -> Amounts {
    let one = Quantity::count(1);
    let mut amounts = Amounts::new();
    let (plural, group) = table.split_once('.').unwrap_or((table, ""));
    amounts.insert(format!("count/{}", qualified(plural, group)), one);
    if COUNTED.contains(&table) {
        amounts.insert(table.to_owned(), one);
    }
    match table {
        "pods" => {
            let (requests, limits) = whole_pod(object);
            for (name, amount) in requests {
                if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
                    amounts.insert(name.clone(), amount);
                }
                amounts.insert(format!("requests.{name}"), amount);
            }
            amounts.extend(limits.into_iter().map(|(name, it)| (format!("limits.{name}"), it)));
        }
        "services" => {
            let is_balanced = text(object, &["spec", "type"]) == "LoadBalancer";
            let ports = items(object, &["spec", "ports"]).iter();
            let open = ports.filter(|port| number(port, &["nodePort"]).unwrap_or(0) > 0).count();
            amounts.insert("services.nodeports".to_owned(), Quantity::count(open));
            let balanced = Quantity::count(usize::from(is_balanced));
            amounts.insert("services.loadbalancers".to_owned(), balanced);
        }
        "persistentvolumeclaims" => {
            let asked = text(object, &["spec", "resources", "requests", "storage"]);
            let class = text(object, &["spec", "storageClassName"]);
            let prefix = format!("{class}.storageclass.storage.k8s.io/");
            if let Some(amount) = Quantity::parse(asked) {
                amounts.insert("requests.storage".to_owned(), amount);
                amounts.insert(format!("{prefix}requests.storage"), amount);
            }
            amounts.insert(format!("{prefix}persistentvolumeclaims"), one);
        }
        _ => {}
    }
    amounts
}

/// The requests or limits that the containers of a pod must specify because a quota limits them.
pub fn missing(table: &str, pod: &Value, hard: &Amounts) -> Option<String> {
    if table != "pods" {
        return None;
    }
    let mut problems = Vec::new();
    for name in hard.keys() {
        let (list, resource) = match name.as_str() {
            "cpu" | "memory" => ("requests", name.as_str()),
            "requests.cpu" | "requests.memory" => ("requests", &name["requests.".len()..]),
            "limits.cpu" | "limits.memory" => ("limits", &name["limits.".len()..]),
            _ => continue,
        };
        let silent: Vec<&str> = items(pod, &["spec", "containers"])
            .iter()
            .chain(items(pod, &["spec", "initContainers"]))
            .filter(|container| at(container, &["resources", list, resource]).is_none())
            .map(|container| text(container, &["name"]))
            .collect();
        if !silent.is_empty() {
            problems.push(format!("{name} for: {}", silent.join(",")));
        }
    }
    (!problems.is_empty()).then(|| problems.join("; "))
}

/// The amounts of a map by name; invalid quantities are omitted.
pub fn amounts(given: Option<&Value>) -> Amounts {
    let all = given.and_then(Value::as_object).into_iter().flatten();
    all.filter_map(|(name, amount)| Some((name.clone(), Quantity::parse(amount.as_str()?)?)))
        .collect()
}

/// Whether a quota applies to such objects.
pub fn is_in_scopes(quota: &Value, table: &str, object: &Value) -> bool {
    let scopes = texts(quota, &["spec", "scopes"]);
    let expressions = items(quota, &["spec", "scopeSelector", "matchExpressions"]);
    if scopes.is_empty() && expressions.is_empty() {
        return true;
    }
    if table != "pods" {
        return false;
    }
    scopes.iter().all(|scope| is_in(scope, object))
        && expressions.iter().all(|expression| {
            let scope = text(expression, &["scopeName"]);
            let operator = text(expression, &["operator"]);
            if scope != "PriorityClass" {
                return is_in(scope, object);
            }
            let class = text(object, &["spec", "priorityClassName"]);
            let is_listed = texts(expression, &["values"]).contains(&class);
            match operator {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "DoesNotExist" => class.is_empty(),
                _ => !class.is_empty(),
            }
        })
}

fn is_in(scope: &str, pod: &Value) -> bool {
    let ends = number(pod, &["spec", "activeDeadlineSeconds"]).is_some_and(|seconds| seconds >= 0);
    let says_nothing = || {
        let (requests, limits) = whole_pod(pod);
        requests.is_empty() && limits.is_empty()
    };
    match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => says_nothing(),
        "NotBestEffort" => !says_nothing(),
        "PriorityClass" => !text(pod, &["spec", "priorityClassName"]).is_empty(),
        "CrossNamespacePodAffinity" => has_foreign_affinity(pod),
        _ => false,
    }
}

/// Whether a pod has affinity or anti-affinity to pods of other namespaces.
fn has_foreign_affinity(pod: &Value) -> bool {
    let is_foreign = |term: &Value| {
        !items(term, &["namespaces"]).is_empty()
            || at(term, &["namespaceSelector"]).is_some_and(|selector| !selector.is_null())
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|kind| {
        let path = |list| ["spec", "affinity", kind, list];
        let required = items(pod, &path("requiredDuringSchedulingIgnoredDuringExecution"));
        let preferred = items(pod, &path("preferredDuringSchedulingIgnoredDuringExecution"));
        required.iter().any(is_foreign)
            || preferred.iter().any(|term| is_foreign(&term["podAffinityTerm"]))
    })
}

/// The requests and the limits of a container.
pub fn container_amounts(container: &Value) -> (Amounts, Amounts) {
    let part = |list: &str| amounts(at(container, &["resources", list]));
    (part("requests"), part("limits"))
}

/// The total requests and limits of a pod; init containers run one after the other.
pub fn whole_pod(pod: &Value) -> (Amounts, Amounts) {
    let mut whole = (Amounts::new(), Amounts::new());
    for container in items(pod, &["spec", "containers"]) {
        let (requests, limits) = container_amounts(container);
        for (sum, part) in [(&mut whole.0, requests), (&mut whole.1, limits)] {
            for (name, amount) in part {
                let before = sum.get(&name).copied();
                sum.insert(name, before.map_or(amount, |before| before.plus(amount)));
            }
        }
    }
    for container in items(pod, &["spec", "initContainers"]) {
        let (requests, limits) = container_amounts(container);
        for (most, part) in [(&mut whole.0, requests), (&mut whole.1, limits)] {
            for (name, amount) in part {
                let before = most.get(&name).filter(|before| before.nanos() >= amount.nanos());
                if before.is_none() {
                    most.insert(name, amount);
                }
            }
        }
    }
    whole
}
