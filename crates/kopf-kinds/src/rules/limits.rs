//! Rules of limit ranges and quotas.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::{Problems, go_text, resources};
use crate::fields::{list, text};
use crate::names::qualified_name_problems;
use crate::quantity::Quantity;

const SCOPES: [&str; 6] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
];

/// Checks the limits of a range: the bounds must be consistent.
pub(super) fn limit_range(spec: &Value, problems: &mut Problems) {
    let mut kinds = HashSet::new();
    for (index, limit) in list(spec, "limits").iter().enumerate() {
        let path = format!("spec.limits[{index}]");
        let kind = text(limit, "type");
        let is_standard = matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim");
        let wrong = qualified_name_problems(kind);
        if wrong.is_empty() && !kind.contains('/') && !is_standard {
            let detail = "must be a standard limit type or fully qualified";
            problems.invalid(&format!("{path}.type"), &limit["type"], detail);
        }
        for problem in wrong {
            problems.invalid(&format!("{path}.type"), &kind.into(), &problem);
        }
        if !kinds.insert(kind) {
            problems.duplicate(&format!("{path}.type"), &limit["type"]);
        }
        limited_names(limit, &path, problems);
        if kind == "PersistentVolumeClaim"
            && ["min", "max"].iter().all(|field| limit[*field].get("storage").is_none())
        {
            let detail = "either minimum or maximum storage value is required, but neither was \
                          provided";
            problems.required(&format!("{path}.limits"), detail);
        }
        bounds(limit, &path, problems);
    }
}

/// Checks the names of the limited resources.
fn limited_names(limit: &Value, path: &str, problems: &mut Problems) {
    let kind = text(limit, "type");
    for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        if kind == "Pod" && field.starts_with("default") {
            if limit[field].as_object().is_some_and(|fields| !fields.is_empty()) {
                let detail = "may not be specified when `type` is 'Pod'";
                problems.forbidden(&format!("{path}.{field}"), detail);
            }
            continue;
        }
        for name in limit[field].as_object().into_iter().flatten().map(|(name, _)| name) {
            let path = format!("{path}.{field}[{name}]");
            if matches!(kind, "Pod" | "Container") {
                resources::container_resource(name, &path, problems);
            } else {
                resources::resource_name(name, &path, problems);
            }
        }
    }
}

/// Two bounds, of which the first may not exceed the second.
struct Order {
    low: (&'static str, &'static str),
    high: (&'static str, &'static str),
    /// The field of the error, and the field whose amount is shown.
    at: &'static str,
    shown: &'static str,
}

const ORDERS: [Order; 6] = [
    Order { low: ("min", "min"), high: ("max", "max"), at: "min", shown: "min" },
    Order {
        low: ("min", "min"),
        high: ("defaultRequest", "default request"),
        at: "defaultRequest",
        shown: "defaultRequest",
    },
    Order {
        low: ("defaultRequest", "default request"),
        high: ("max", "max"),
        at: "defaultRequest",
        shown: "defaultRequest",
    },
    Order {
        low: ("defaultRequest", "default request"),
        high: ("default", "default limit"),
        at: "defaultRequest",
        shown: "defaultRequest",
    },
    Order { low: ("min", "min"), high: ("default", "default"), at: "default", shown: "min" },
    Order { low: ("default", "default"), high: ("max", "max"), at: "default", shown: "max" },
];

fn bounds(limit: &Value, path: &str, problems: &mut Problems) {
    let mut names: Vec<&String> =
        ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"]
            .iter()
            .flat_map(|field| limit[*field].as_object().into_iter().flatten())
            .map(|(name, _)| name)
            .collect();
    names.sort();
    names.dedup();
    let is_pod = limit["type"] == "Pod";
    for name in names {
        let value = |field: &str| {
            limit[field].get(name).filter(|_| !(is_pod && field.starts_with("default")))
        };
        for order in &ORDERS {
            let (Some(low), Some(high)) = (value(order.low.0), value(order.high.0)) else {
                continue;
            };
            if resources::nanos(low) > resources::nanos(high) {
                let shown = go_quantity(value(order.shown).unwrap_or(&Value::Null));
                let detail = format!(
                    "{} value {} is greater than {} value {}",
                    order.low.1,
                    low.as_str().unwrap_or_default(),
                    order.high.1,
                    high.as_str().unwrap_or_default()
                );
                problems.invalid_text(&format!("{path}.{}[{name}]", order.at), &shown, &detail);
            }
        }
        if let Some(ratio) = value("maxLimitRequestRatio") {
            let path = format!("{path}.maxLimitRequestRatio[{name}]");
            self::ratio(ratio, value("min"), value("max"), &path, problems);
        }
    }
}

/// Checks the maximum ratio of limit to request.
fn ratio(
    ratio: &Value,
    least: Option<&Value>,
    most: Option<&Value>,
    path: &str,
    problems: &mut Problems,
) {
    const ONE: i128 = 1_000_000_000;
    let Some(nanos) = resources::nanos(ratio) else { return };
    let text = ratio.as_str().unwrap_or_default();
    if nanos < ONE {
        let detail = format!("ratio {text} is less than 1");
        problems.invalid_text(path, &go_quantity(ratio), &detail);
    }
    let amount = |value: Option<&Value>| value.and_then(resources::nanos);
    if let (Some(least), Some(most)) = (amount(least), amount(most)) {
        #[expect(clippy::cast_precision_loss, reason = "upstream divides floats, too")]
        let (wanted, possible) = (nanos as f64 / ONE as f64, most as f64 / least as f64);
        if wanted > possible {
            let detail = format!("ratio {text} is greater than max/min = {possible:.6}");
            problems.invalid_text(path, &go_quantity(ratio), &detail);
        }
    }
}

/// An amount as Go prints the struct, for amounts in canonical form.
pub(super) fn go_quantity(value: &Value) -> String {
    const SUFFIXES: [(&str, &str); 3] = [("n", "-9"), ("u", "-6"), ("m", "-3")];
    let text = value.as_str().unwrap_or_default();
    match SUFFIXES.iter().find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, scale))) {
        Some((digits, scale)) => format!(
            "resource.Quantity{{i:resource.int64Amount{{value:{digits}, scale:{scale}}}, \
             d:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}, s:{text:?}, Format:\"DecimalSI\"}}"
        ),
        None => go_fraction(value),
    }
}

/// An amount as Go prints the struct, for fractions with a decimal point.
pub(super) fn go_fraction(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    let Some(nanos) = Quantity::parse(text).map(Quantity::nanos) else { return text.to_owned() };
    // Go keeps the unit of a number without a decimal point.
    let unit = [('m', 3), ('u', 6), ('n', 9)].into_iter().find(|(unit, _)| text.ends_with(*unit));
    if let Some((_, scale)) = unit
        && !text.contains('.')
    {
        let number = nanos / 10_i128.pow(9 - scale);
        return format!(
            "resource.Quantity{{i:resource.int64Amount{{value:{number}, scale:-{scale}}}, \
             d:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}, s:{text:?}, Format:\"DecimalSI\"}}"
        );
    }
    // The smallest number of decimals that represents the amount.
    let scale = (0..9).find(|scale| nanos % 10_i128.pow(9 - scale) == 0).unwrap_or(9);
    let number = nanos / 10_i128.pow(9 - scale);
    let is_binary = text.ends_with('i');
    let format = if is_binary { "BinarySI" } else { "DecimalSI" };
    let cached = if scale == 0 { text } else { "" };
    let shown_scale = if scale == 0 { "0".to_owned() } else { format!("-{scale}") };
    format!(
        "resource.Quantity{{i:resource.int64Amount{{value:{number}, scale:{shown_scale}}}, \
         d:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}, s:{cached:?}, Format:{format:?}}}"
    )
}

/// The errors of a quota.
pub(super) fn quota(spec: &Value, problems: &mut Problems) {
    quota_amounts(&spec["hard"], "spec.hard", problems);
    scopes(spec, problems);
    if spec["scopeSelector"].is_object() {
        scope_selector(spec, problems);
    }
}

/// The errors of a quota's status.
pub(super) fn quota_status(status: &Value, problems: &mut Problems) {
    for field in ["hard", "used"] {
        quota_amounts(&status[field], &format!("status.{field}"), problems);
    }
}

fn quota_amounts(amounts: &Value, path: &str, problems: &mut Problems) {
    for (name, value) in amounts.as_object().into_iter().flatten() {
        let path = format!("{path}[{name}]");
        resources::resource_name(name, &path, problems);
        if !name.contains('/') && !resources::is_quota_resource(name) {
            problems.invalid_text(&path, name, "must be a standard resource for quota");
        }
        resources::quantity(name, value, &path, problems);
    }
}

fn go_scopes(scopes: &[Value]) -> String {
    if scopes.is_empty() {
        return "[]core.ResourceQuotaScope(nil)".to_owned();
    }
    let shown: Vec<String> = scopes.iter().map(Value::to_string).collect();
    format!("[]core.ResourceQuotaScope{{{}}}", shown.join(", "))
}

/// The number of limits on resources that do not belong to a scope.
fn foreign_limits(spec: &Value, scope: &str) -> usize {
    const COMPUTE: [&str; 6] =
        ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
    let is_foreign = |name: &str| match scope {
        "BestEffort" => name != "pods",
        _ if SCOPES.contains(&scope) => name != "pods" && !COMPUTE.contains(&name),
        _ => false,
    };
    let hard = spec["hard"].as_object().into_iter().flatten();
    hard.filter(|(name, _)| resources::is_quota_resource(name) && is_foreign(name)).count()
}

fn scopes(spec: &Value, problems: &mut Problems) {
    const PATH: &str = "spec.scopes";
    let scopes = list(spec, "scopes");
    let shown = go_scopes(scopes);
    for scope in scopes {
        let name = scope.as_str().unwrap_or_default();
        if !SCOPES.contains(&name) {
            problems.invalid_text(PATH, &shown, "unsupported scope");
        }
        for _ in 0..foreign_limits(spec, name) {
            problems.invalid_text(PATH, &shown, "unsupported scope applied to resource");
        }
    }
    let names: Vec<&str> = scopes.iter().filter_map(Value::as_str).collect();
    for _ in 0..conflicts(&names) {
        problems.invalid_text(PATH, &shown, "conflicting scopes");
    }
}

fn conflicts(scopes: &[&str]) -> usize {
    const PAIRS: [[&str; 2]; 2] =
        [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];
    PAIRS.iter().filter(|pair| pair.iter().all(|scope| scopes.contains(scope))).count()
}

fn scope_selector(spec: &Value, problems: &mut Problems) {
    const PATH: &str = "spec.scopeSelector.matchExpressions";
    let requirements = list(&spec["scopeSelector"], "matchExpressions");
    let shown: Vec<String> = requirements
        .iter()
        .map(|requirement| {
            format!(
                "core.ScopedResourceSelectorRequirement{{ScopeName:{:?}, Operator:{:?}, Values:{}}}",
                text(requirement, "scopeName"),
                text(requirement, "operator"),
                go_text::string_list(&requirement["values"])
            )
        })
        .collect();
    let shown = format!(
        "core.ScopeSelector{{MatchExpressions:[]core.ScopedResourceSelectorRequirement{{{}}}}}",
        shown.join(", ")
    );
    let mut names = Vec::new();
    for requirement in requirements {
        let (name, operator) = (text(requirement, "scopeName"), text(requirement, "operator"));
        if !SCOPES.contains(&name) {
            problems.invalid(&format!("{PATH}.scopeName"), &name.into(), "unsupported scope");
        }
        for _ in 0..foreign_limits(spec, name) {
            problems.invalid_text(PATH, &shown, "unsupported scope applied to resource");
        }
        if SCOPES.contains(&name) && name != "PriorityClass" && operator != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                          ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or \
                          ResourceQuotaScopeCrossNamespacePodAffinity";
            problems.invalid(&format!("{PATH}.operator"), &operator.into(), detail);
        }
        scope_values(requirement, PATH, problems);
        names.push(name);
    }
    for _ in 0..conflicts(&names) {
        problems.invalid_text(PATH, &go_scopes(list(spec, "scopes")), "conflicting scopes");
    }
}

fn scope_values(requirement: &Value, path: &str, problems: &mut Problems) {
    let has_values = !list(requirement, "values").is_empty();
    let at = format!("{path}.values");
    match text(requirement, "operator") {
        "In" | "NotIn" if !has_values => {
            let detail =
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            problems.required(&at, detail);
        }
        "Exists" | "DoesNotExist" if has_values => {
            let shown = go_text::string_list(&requirement["values"]);
            let detail =
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            problems.invalid_text(&at, &shown, detail);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        operator => {
            let detail = "not a valid selector operator";
            problems.invalid(&format!("{path}.operator"), &operator.into(), detail);
        }
    }
}

/// The scopes of a quota determine what it has counted, so they are immutable.
pub(super) fn quota_update(object: &Value, old: &Value, problems: &mut Problems) {
    let scopes = |quota: &Value| -> BTreeSet<String> {
        list(&quota["spec"], "scopes").iter().map(Value::to_string).collect()
    };
    if scopes(object) != scopes(old) {
        let shown = go_scopes(list(&object["spec"], "scopes"));
        problems.invalid_text("spec.scopes", &shown, "field is immutable");
    }
}
