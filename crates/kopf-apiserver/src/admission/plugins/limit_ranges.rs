//! LimitRanges: defaults for containers of new pods, and bounds for pods and claims.
//!
//! Follows the rules and the messages of upstream's plugin.

use kopf_kinds::quota::{Amounts, amounts, container_amounts, whole_pod};
use serde_json::{Value, json};

use crate::admission::{AdmissionRequest, Operation};
use crate::fields::{at, items, set, text};
use crate::quantity::Quantity;
use crate::store::Snapshot;

/// The table of limit ranges.
const RANGES: &str = "limitranges";
/// The annotation that lists the defaults that a pod received.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Sets the defaults of all limit ranges on the containers of a new pod.
pub(super) fn fill(snapshot: &Snapshot, namespace: &str, pod: &mut Value) {
    for (_, range) in snapshot.list(RANGES, namespace) {
        let mut defaults = json!({"limits": {}, "requests": {}});
        for limit in items(range.content(), &["spec", "limits"]) {
            if text(limit, &["type"]) != "Container" {
                continue;
            }
            for (from, to) in [("default", "limits"), ("defaultRequest", "requests")] {
                for (name, amount) in limit[from].as_object().into_iter().flatten() {
                    defaults[to][name] = amount.clone();
                }
            }
        }
        let mut notes = Vec::new();
        for (list, words) in [("containers", "container"), ("initContainers", "init container")] {
            let Some(all) = pod["spec"].get_mut(list).and_then(Value::as_array_mut) else {
                continue;
            };
            all.iter_mut().for_each(|one| merge(one, &defaults, words, &mut notes));
        }
        if !notes.is_empty() {
            let note = format!("LimitRanger plugin set: {}", notes.join("; "));
            set(pod, &["metadata", "annotations", ANNOTATION], json!(note));
        }
    }
}

fn merge(container: &mut Value, defaults: &Value, words: &str, notes: &mut Vec<String>) {
    let container_name = text(container, &["name"]).to_owned();
    for (list, what) in [("requests", "request"), ("limits", "limit")] {
        let mut filled = Vec::new();
        for (name, amount) in defaults[list].as_object().into_iter().flatten() {
            if container["resources"][list].get(name).is_none() {
                set(container, &["resources", list, name], amount.clone());
                filled.push(name.as_str());
            }
        }
        if !filled.is_empty() {
            filled.sort_unstable();
            notes.push(format!("{} {what} for {words} {container_name}", filled.join(", ")));
        }
    }
}

/// The limits that a new pod or claim violates.
pub(super) fn problems(snapshot: &Snapshot, request: &AdmissionRequest<'_>) -> Vec<String> {
    let is_pod = &*request.resource.table == "pods" && request.operation == Operation::Create;
    let is_claim = &*request.resource.table == "persistentvolumeclaims"
        && request.operation != Operation::Delete;
    let Some(object) = request.object.as_ref().filter(|_| request.subresource.is_empty()) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    if !is_pod && !is_claim {
        return problems;
    }
    for (_, range) in snapshot.list(RANGES, request.namespace) {
        for limit in items(range.content(), &["spec", "limits"]) {
            let bounds = Bounds { limit, kind: text(limit, &["type"]) };
            match bounds.kind {
                "Container" if is_pod => {
                    let regular = items(object, &["spec", "containers"]).iter();
                    let initial = items(object, &["spec", "initContainers"]);
                    for container in regular.chain(initial) {
                        let (requests, limits) = container_amounts(container);
                        bounds.check(&requests, &limits, &mut problems);
                    }
                }
                "Pod" if is_pod => {
                    let (requests, limits) = whole_pod(object);
                    bounds.check(&requests, &limits, &mut problems);
                }
                "PersistentVolumeClaim" if is_claim => {
                    let asked = amounts(at(object, &["spec", "resources", "requests"]));
                    bounds.check_claim(&asked, &mut problems);
                }
                _ => {}
            }
        }
    }
    problems
}

struct Bounds<'a> {
    limit: &'a Value,
    kind: &'a str,
}

impl Bounds<'_> {
    fn check(&self, requests: &Amounts, limits: &Amounts, problems: &mut Vec<String>) {
        for (name, least) in amounts(self.limit.get("min")) {
            let is_less = |amount: Quantity| amount.nanos() < least.nanos();
            let say = |tail: &str| self.usage("minimum", &name, least, tail);
            match (requests.get(&name), limits.get(&name)) {
                (None, _) => problems.push(say(".  No request is specified")),
                (Some(request), _) if is_less(*request) => {
                    problems.push(say(&format!(", but request is {}", request.canonical())));
                }
                (_, Some(limit)) if is_less(*limit) => {
                    problems.push(say(&format!(", but limit is {}", limit.canonical())));
                }
                _ => {}
            }
        }
        for (name, most) in amounts(self.limit.get("max")) {
            let is_more = |amount: Quantity| amount.nanos() > most.nanos();
            let say = |tail: &str| self.usage("maximum", &name, most, tail);
            match (requests.get(&name), limits.get(&name)) {
                (_, None) => problems.push(say(".  No limit is specified")),
                (_, Some(limit)) if is_more(*limit) => {
                    problems.push(say(&format!(", but limit is {}", limit.canonical())));
                }
                (Some(request), _) if is_more(*request) => {
                    problems.push(say(&format!(", but request is {}", request.canonical())));
                }
                _ => {}
            }
        }
        for (name, ratio) in amounts(self.limit.get("maxLimitRequestRatio")) {
            self.check_ratio(&name, ratio, requests, limits, problems);
        }
    }

    fn usage(&self, bound: &str, name: &str, amount: Quantity, tail: &str) -> String {
        format!("{bound} {name} usage per {} is {}{tail}", self.kind, amount.canonical())
    }

    fn check_ratio(
        &self,
        name: &str,
        ratio: Quantity,
        requests: &Amounts,
        limits: &Amounts,
        problems: &mut Vec<String>,
    ) {
        let text = ratio.canonical();
        let say = |tail: &str| {
            format!("{name} max limit to request ratio per {} is {text}, but {tail}", self.kind)
        };
        let asked = |amounts: &Amounts| {
            amounts.get(name).map(|amount| amount.nanos()).filter(|nanos| *nanos != 0)
        };
        match (asked(requests), asked(limits)) {
            (None, _) => problems.push(say("no request is specified or request is 0")),
            (_, None) => problems.push(say("no limit is specified or limit is 0")),
            (Some(request), Some(limit)) => {
                let observed = limit as f64 / request as f64;
                let most = ratio.nanos() as f64 / 1e9;
                if observed > most {
                    problems.push(say(&format!("provided ratio is {observed:.6}")));
                }
            }
        }
    }

    fn check_claim(&self, asked: &Amounts, problems: &mut Vec<String>) {
        for (name, least) in amounts(self.limit.get("min")) {
            match asked.get(&name) {
                None => {
                    let tail = ".  No request is specified";
                    problems.push(self.usage("minimum", &name, least, tail));
                }
                Some(amount) if amount.nanos() < least.nanos() => {
                    let tail = format!(", but request is {}", amount.canonical());
                    problems.push(self.usage("minimum", &name, least, &tail));
                }
                Some(_) => {}
            }
        }
        for (name, most) in amounts(self.limit.get("max")) {
            match asked.get(&name) {
                None => {
                    let tail = ".  No request is specified";
                    problems.push(self.usage("maximum", &name, most, tail));
                }
                Some(amount) if amount.nanos() > most.nanos() => {
                    let tail = format!(", but request is {}", amount.canonical());
                    problems.push(self.usage("maximum", &name, most, &tail));
                }
                Some(_) => {}
            }
        }
    }
}
