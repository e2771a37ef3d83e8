//! Rules of resource requirements: names, amounts, requests below limits.

use serde_json::Value;

use super::{Problems, limits};
use crate::names::qualified_name_problems;
use crate::quantity::Quantity;

/// Resources that every container supports.
const CONTAINER_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Unprefixed resources that a quota may limit.
const QUOTA_RESOURCES: [&str; 19] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];
/// Resources that are counted in whole numbers.
const WHOLE: [&str; 9] = [
    "pods",
    "services",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const HUGE_PAGES: &str = "hugepages-";

pub(super) fn nanos(value: &Value) -> Option<i128> {
    value.as_str().and_then(Quantity::parse).map(Quantity::nanos)
}

/// Requests and limits of a container.
pub(super) fn check(resources: &Value, path: &str, problems: &mut Problems) {
    let entries = |kind: &str| {
        let fields = resources[kind].as_object();
        fields.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone()))
    };
    for (name, limit) in entries("limits") {
        let at = format!("{path}.limits[{name}]");
        container_resource(&name, &at, problems);
        quantity(&name, &limit, &at, problems);
        huge_page(&name, &limit, &at, problems);
    }
    for (name, request) in entries("requests") {
        let at = format!("{path}.requests[{name}]");
        container_resource(&name, &at, problems);
        quantity(&name, &request, &at, problems);
        let limit = &resources["limits"][&name];
        let is_exact = name.starts_with(HUGE_PAGES) || is_extended(&name);
        match (nanos(&request), nanos(limit)) {
            (Some(asked), Some(allowed)) if asked != allowed && is_exact => {
                let limit = limit.as_str().unwrap_or_default();
                let detail = format!("must be equal to {name} limit of {limit}");
                problems.invalid(&format!("{path}.requests"), &request, &detail);
            }
            (Some(asked), Some(allowed)) if asked > allowed => {
                let limit = limit.as_str().unwrap_or_default();
                let detail = format!("must be less than or equal to {name} limit of {limit}");
                problems.invalid(&format!("{path}.requests"), &request, &detail);
            }
            (Some(_), None) if is_exact => {
                let detail = "Limit must be set for non overcommitable resources";
                problems.required(&format!("{path}.limits"), detail);
            }
            _ => {}
        }
        huge_page(&name, &request, &at, problems);
    }
    let has = |wanted: &dyn Fn(&str) -> bool| {
        entries("limits").chain(entries("requests")).any(|(name, _)| wanted(&name))
    };
    if has(&|name| name.starts_with(HUGE_PAGES)) && !has(&|name| matches!(name, "cpu" | "memory")) {
        problems.forbidden(path, "HugePages require cpu or memory");
    }
}

/// Checks an amount of a resource: not negative, and an integer for countable resources.
pub(super) fn quantity(name: &str, value: &Value, path: &str, problems: &mut Problems) {
    const ONE: i128 = 1_000_000_000;
    let Some(amount) = nanos(value) else { return };
    if amount < 0 {
        problems.invalid(path, value, "must be greater than or equal to 0");
    }
    let is_counted = WHOLE.contains(&name) || is_extended(name) || name.starts_with("count/");
    if is_counted && amount % ONE != 0 {
        problems.invalid_text(path, &limits::go_fraction(value), "must be an integer");
    }
}

/// Checks that an amount is not negative; shows it as an integer.
pub(super) fn basic(value: &Value, path: &str, problems: &mut Problems) {
    const ONE: i128 = 1_000_000_000;
    let Some(amount) = nanos(value).filter(|amount| *amount < 0) else { return };
    let whole = -((-amount + ONE - 1) / ONE);
    problems.invalid_text(path, &whole.to_string(), "must be a valid resource quantity");
}

/// Whether a resource has its own prefix.
fn is_extended(name: &str) -> bool {
    name.contains('/')
        && !name.starts_with("kubernetes.io/")
        && !name.contains(".kubernetes.io/")
        && !name.starts_with("count/")
        && !name.starts_with("requests.")
}

/// Whether a quota may limit an unprefixed resource.
pub(super) fn is_quota_resource(name: &str) -> bool {
    let page = name.strip_prefix("requests.").unwrap_or(name);
    QUOTA_RESOURCES.contains(&name) || page.starts_with(HUGE_PAGES)
}

/// Checks the name of a resource in a quota, a limit range or a node.
pub(super) fn resource_name(name: &str, path: &str, problems: &mut Problems) -> bool {
    let wrong = qualified_name_problems(name);
    for problem in &wrong {
        problems.invalid_text(path, name, problem);
    }
    if !wrong.is_empty() {
        return false;
    }
    let is_known = is_quota_resource(name) || name == "storage" || name.starts_with(HUGE_PAGES);
    if !name.contains('/') && !is_known {
        let detail = "must be a standard resource type or fully qualified";
        problems.invalid_text(path, name, detail);
    }
    true
}

/// Checks the name of a resource that a container may request.
pub(super) fn container_resource(name: &str, path: &str, problems: &mut Problems) {
    if !resource_name(name, path, problems) {
        return;
    }
    let is_known = CONTAINER_RESOURCES.contains(&name) || name.starts_with(HUGE_PAGES);
    if !name.contains('/') && !is_known {
        problems.invalid_text(path, name, "must be a standard resource for containers");
    }
}

fn huge_page(name: &str, value: &Value, path: &str, problems: &mut Problems) {
    let Some(size) = name.strip_prefix(HUGE_PAGES) else { return };
    let (Some(amount), Some(page)) = (nanos(value), nanos(&size.into())) else { return };
    if page > 0 && amount % page != 0 {
        let shown = value.as_str().unwrap_or_default();
        let detail = format!("{shown} is not positive integer multiple of {name}");
        problems.invalid(path, value, &detail);
    }
}
