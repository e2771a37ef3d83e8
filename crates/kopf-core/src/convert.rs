//! Conversions between the versions of a custom resource, and the handlers that perform them.
//!
//! Pure. The conversions of one resource are a graph of its versions. Gets handlers from the
//! registry and objects from the reviews of the cluster; the engine calls the handlers in between.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use kopf_model::Selector;
use kopf_model::resource::SelectorName;
use serde_json::{Map, Value};

use crate::groups;
use crate::handler::{Handler, HandlerKind};

/// The conversions of one custom resource.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The API group.
    pub group: String,
    /// The plural name.
    pub plural: String,
    /// In declaration order.
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
struct Step {
    from: String,
    to: String,
    handler: Arc<Handler>,
}

/// The versions on the way to another one, each with the handler that converts to it.
pub type Route<'a> = Vec<(&'a str, &'a Arc<Handler>)>;

/// There are no handlers to convert from one version to another.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no conversions lead from {from} to {to}, but from {from} to {}: add a handler with \
     `#[kopf::on::convert(..., to = ...)]`",
    listed(.reachable)
)]
pub struct NoRoute {
    /// The version of the object.
    pub from: String,
    /// The requested version.
    pub to: String,
    /// The reachable versions, nearest first.
    pub reachable: Vec<String>,
}

/// A conversion did not return an object.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a conversion returns the object in the other version, not {0}")]
pub struct NotAnObject(&'static str);

fn listed(versions: &[String]) -> String {
    if versions.is_empty() { "nothing".to_owned() } else { versions.join(", ") }
}

/// The conversions of all resources, ordered by name, without the invalid ones.
#[must_use]
pub fn charts<'a>(handlers: impl IntoIterator<Item = &'a Arc<Handler>>) -> Vec<Chart> {
    let mut charts: BTreeMap<(String, String), Chart> = BTreeMap::new();
    for handler in handlers {
        let Some((from, to)) = ends(handler).filter(|(from, to)| mistake(from, to).is_none())
        else {
            continue;
        };
        let (Some(from), Some(to)) = (Place::of(from), Place::of(to)) else { continue };
        let key = (from.group.to_owned(), from.plural.to_owned());
        let (group, plural) = key.clone();
        let chart = charts.entry(key).or_insert(Chart { group, plural, steps: Vec::new() });
        let (from, to) = (from.version.to_owned(), to.version.to_owned());
        if !chart.steps.iter().any(|step| step.from == from && step.to == to) {
            chart.steps.push(Step { from, to, handler: Arc::clone(handler) });
        }
    }
    charts.into_values().collect()
}

impl Chart {
    /// The name of the definition: `databases.example.com`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// The shortest route from one version to another.
    ///
    /// Among several shortest routes, the one whose handlers were declared first. Empty if both
    /// versions are the same.
    ///
    /// # Errors
    /// Fails if there is no route.
    pub fn route(&self, from: &str, to: &str) -> Result<Route<'_>, NoRoute> {
        let mut ways: Vec<(&str, Route<'_>)> = vec![(from, Vec::new())];
        let mut waiting = VecDeque::from([0]);
        while let Some(number) = waiting.pop_front() {
            let (version, way) = ways[number].clone();
            if version == to {
                return Ok(way);
            }
            for step in self.steps.iter().filter(|step| step.from == version) {
                if ways.iter().all(|(known, _)| *known != step.to) {
                    let mut way = way.clone();
                    way.push((&step.to, &step.handler));
                    waiting.push_back(ways.len());
                    ways.push((&step.to, way));
                }
            }
        }
        let reachable = ways.iter().skip(1).map(|(version, _)| (*version).to_owned()).collect();
        Err(NoRoute { from: from.to_owned(), to: to.to_owned(), reachable })
    }

    /// The pairs of versions without a route, although handlers name both.
    #[must_use]
    pub fn gaps(&self) -> Vec<NoRoute> {
        let mut versions: Vec<&str> = Vec::new();
        for version in self.steps.iter().flat_map(|step| [&step.from, &step.to]) {
            if !versions.contains(&version.as_str()) {
                versions.push(version);
            }
        }
        let pairs = versions.iter().flat_map(|from| versions.iter().map(move |to| (from, to)));
        pairs.filter_map(|(from, to)| self.route(from, to).err()).collect()
    }
}

/// The object after one step: the handler's result, with the identity of the original object.
///
/// The version and the kind are set, and the metadata is that of the original. Only labels and
/// annotations are taken from the result, if present; the status is kept if the result has none.
///
/// # Errors
/// Fails if the result is not an object.
pub fn completed(
    original: &Value,
    result: Value,
    group: &str,
    version: &str,
) -> Result<Value, NotAnObject> {
    let mut result = match result {
        Value::Object(fields) => fields,
        Value::Null => return Err(NotAnObject("nothing")),
        Value::Array(_) => return Err(NotAnObject("a list")),
        _ => return Err(NotAnObject("a single value")),
    };
    let mut metadata = match &original["metadata"] {
        Value::Object(metadata) => metadata.clone(),
        _ => Map::new(),
    };
    for key in ["labels", "annotations"] {
        let changed = result.get("metadata").and_then(|metadata| metadata.get(key));
        if let Some(changed) = changed.filter(|changed| changed.is_object()) {
            metadata.insert(key.to_owned(), changed.clone());
        }
    }
    if let Some(status) = original.get("status").filter(|_| !result.contains_key("status")) {
        result.insert("status".to_owned(), status.clone());
    }
    result.insert("apiVersion".to_owned(), format!("{group}/{version}").into());
    result.insert("kind".to_owned(), original["kind"].clone());
    result.insert("metadata".to_owned(), Value::Object(metadata));
    Ok(Value::Object(result))
}

/// All problems of the conversions among some handlers, one sentence each.
#[must_use]
pub fn problems<'a>(handlers: impl IntoIterator<Item = &'a Handler>) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen: Vec<([&str; 4], &Handler)> = Vec::new();
    for handler in handlers {
        let Some((from, to)) = ends(handler) else { continue };
        let id = &handler.id;
        if let Some(mistake) = mistake(from, to).or_else(|| other_kind(handler)) {
            problems.push(format!("conversion {id} {mistake}"));
            continue;
        }
        let (Some(from), Some(to)) = (Place::of(from), Place::of(to)) else { continue };
        let pair = [from.group, from.plural, from.version, to.version];
        match seen.iter().find(|(known, _)| *known == pair) {
            Some((_, other)) => problems.push(format!(
                "conversions {} and {id} are between the same versions: remove one of them",
                other.id
            )),
            None => seen.push((pair, handler)),
        }
    }
    problems
}

/// The selectors of the two versions of a conversion.
fn ends(handler: &Handler) -> Option<(&Selector, &Selector)> {
    let HandlerKind::Convert(options) = &handler.kind else { return None };
    Some((handler.selector.as_ref()?, &options.to))
}

/// A version of a resource, if a selector specifies it completely.
struct Place<'a> {
    group: &'a str,
    version: &'a str,
    plural: &'a str,
}

impl<'a> Place<'a> {
    fn of(selector: &'a Selector) -> Option<Self> {
        let (SelectorName::Plural(plural) | SelectorName::Any(plural)) = &selector.name else {
            return None;
        };
        let (group, version) = (selector.group.as_deref()?, selector.version.as_deref()?);
        Some(Self { group, version, plural })
    }
}

fn mistake(from: &Selector, to: &Selector) -> Option<String> {
    let (Some(start), Some(end)) = (Place::of(from), Place::of(to)) else {
        return Some(format!("needs a group, a version and a plural, and has {from} and {to}"));
    };
    if (start.group, start.plural) != (end.group, end.plural) {
        let other = "a conversion is between versions of one resource";
        return Some(format!("leads from {from} to {to}: {other}"));
    }
    if !groups::is_custom(start.group) {
        return Some(format!("is for {from}, which is built in: only custom resources convert"));
    }
    (start.version == end.version).then(|| format!("leads from {} to itself", start.version))
}

/// Types can have the same plural and different kinds, but definitions cannot.
fn other_kind(handler: &Handler) -> Option<String> {
    let kinds: Vec<Value> =
        handler.definitions().map(|it| it["spec"]["names"]["kind"].clone()).collect();
    match kinds.as_slice() {
        [one, other] if one != other => {
            Some(format!("leads from {one} to {other}: all versions of a resource have one kind"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
