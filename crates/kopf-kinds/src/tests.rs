//! Creations recorded from a real server, replayed through defaults, ownership and rules.

mod updates;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use super::{KindContext, Objects, SequentialIds, strategy_for};
use crate::resource::{ResourceInfo, Subresource};
use crate::schema;
use kopf_apimachinery::apply::{Manager, track_update};
use kopf_apimachinery::{FieldError, StatusError, Stored};

const UID: &str = "00000000-0000-0000-0000-00000000aaaa";

/// An empty store.
struct Nothing;

impl Objects for Nothing {
    fn get(&self, _table: &str, _namespace: &str, _name: &str) -> Option<Arc<Stored>> {
        None
    }

    fn list(&self, _table: &str) -> Vec<Arc<Stored>> {
        Vec::new()
    }

    fn list_with_pending(&self, _table: &str) -> Vec<Arc<Stored>> {
        Vec::new()
    }
}

struct Recorded {
    version: String,
    resource: String,
    namespaced: bool,
    body: Value,
    status: u64,
    response: Value,
}

fn recordings() -> Vec<Recorded> {
    let lines = include_str!("recorded.jsonl").lines();
    let parse = |line: &str| {
        let value: Value = serde_json::from_str(line).expect("a recording is JSON");
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        Recorded {
            version: text("version"),
            resource: text("resource"),
            namespaced: value["namespaced"] == true,
            body: value["body"].clone(),
            status: value["status"].as_u64().unwrap_or_default(),
            response: value["response"].clone(),
        }
    };
    lines.map(parse).collect()
}

/// The kind of a resource, taken from the recordings: errors name it in their details.
fn kinds() -> &'static BTreeMap<String, String> {
    static KINDS: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    KINDS.get_or_init(read_kinds)
}

fn read_kinds() -> BTreeMap<String, String> {
    let named = recordings().into_iter().map(|recorded| {
        let kind = match recorded.response["kind"].as_str() {
            Some("Status") => recorded.response["details"]["kind"].clone(),
            _ => recorded.response["kind"].clone(),
        };
        (recorded.resource, kind.as_str().unwrap_or_default().to_owned())
    });
    named.collect()
}

fn resource(recorded: &Recorded) -> ResourceInfo {
    let (group, version) = recorded.version.split_once('/').unwrap_or(("", &recorded.version));
    let kind = kinds()[&recorded.resource].clone();
    let has_status = crate::shape::Shape::of(&recorded.version, &kind)
        .is_some_and(|shape| shape.has_field("status"));
    let status = Subresource {
        name: "status".into(),
        group: String::new(),
        version: String::new(),
        kind: kind.clone(),
        verbs: Vec::new(),
    };
    ResourceInfo {
        group: group.into(),
        version: version.into(),
        resource: recorded.resource.clone(),
        singular: String::new(),
        list_kind: format!("{kind}List"),
        schema: schema::builtin(group, version, &kind),
        kind,
        namespaced: recorded.namespaced,
        verbs: Vec::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        subresources: if has_status { vec![status] } else { Vec::new() },
        table: Arc::from(recorded.resource.as_str()),
        storage_version: version.into(),
        custom: None,
    }
}

/// The steps of the pipeline between decoding and storing, without those of other modules.
fn create(recorded: &Recorded) -> Result<Value, Vec<FieldError>> {
    let info = resource(recorded);
    let ids = SequentialIds::default();
    let context = KindContext {
        resource: &info,
        subresource: "",
        objects: &Nothing,
        now: jiff::Timestamp::UNIX_EPOCH,
        ids: &ids,
        is_dry_run: false,
    };
    let strategy = strategy_for(&info);
    let mut object = recorded.body.clone();
    object["apiVersion"] = json!(recorded.version);
    object["kind"] = json!(info.kind);
    let known = info.schema.clone().expect("every recorded kind has a schema");
    schema::prune(&known, &mut object);
    schema::fill_defaults(&known, &mut object);
    strategy.default(&context, &mut object);
    if recorded.namespaced {
        object["metadata"]["namespace"] = json!("patch-a");
    }
    let manager = Manager {
        name: "m",
        api_version: &recorded.version,
        kind: &info.kind,
        subresource: "",
        has_status: info.has_status(),
        has_versions: false,
        time: "2026-01-01T00:00:00Z",
    };
    track_update(&manager, Some(&known), None, &mut object).put_into(&mut object);
    strategy.admit(&context, &mut object);
    object["metadata"]["uid"] = json!(UID);
    object["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
    if info.has_status() && !super::Kind::of(&info).keeps_status_on_create {
        object.as_object_mut().expect("an object").shift_remove("status");
    }
    strategy.prepare_create(&context, &mut object);
    let problems = strategy.validate_create(&context, &object);
    if problems.is_empty() { Ok(object) } else { Err(problems) }
}

/// The object without fields that differ between runs.
fn stable(object: &Value) -> Value {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let mut text = object.to_string().replace(uid, "UID");
    for pointer in ["/status/conditions/0/lastTransitionTime", "/status/lastPhaseTransitionTime"] {
        if let Some(time) = object.pointer(pointer).and_then(Value::as_str) {
            text = text.replace(time, "TIME");
        }
    }
    for volume in object.pointer("/spec/volumes").and_then(Value::as_array).into_iter().flatten() {
        let name = volume["name"].as_str().unwrap_or_default();
        if name.starts_with("kube-api-access-") {
            text = text.replace(name, "kube-api-access");
        }
    }
    let mut object: Value = serde_json::from_str(&text).expect("replacing ids keeps JSON valid");
    let metadata = object["metadata"].as_object_mut().expect("objects have metadata");
    for key in ["creationTimestamp", "generation", "resourceVersion"] {
        metadata.shift_remove(key);
    }
    for entry in
        metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten()
    {
        entry.as_object_mut().expect("an entry").shift_remove("time");
    }
    if object["kind"] == "Node" {
        // Taints depend on the node lifecycle controller, which is not emulated.
        object["spec"].as_object_mut().expect("a spec").shift_remove("taints");
    }
    if object["kind"] == "Service" {
        for pointer in ["/spec/clusterIP", "/spec/clusterIPs/0"] {
            if let Some(address) = object.pointer_mut(pointer).filter(|address| **address != "None")
            {
                *address = json!("IP");
            }
        }
        for port in object["spec"]["ports"].as_array_mut().into_iter().flatten() {
            if port.get("nodePort").is_some() {
                port["nodePort"] = json!("PORT");
            }
        }
    }
    object
}

/// The causes, sorted: Go's map order is random.
fn causes(status: &Value) -> Vec<String> {
    let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
    let mut causes: Vec<String> = causes.iter().map(Value::to_string).collect();
    causes.sort();
    causes
}

/// Messages join their causes, so only those with one cause have a fixed text.
fn same_message(left: &Value, right: &Value) -> bool {
    causes(left).len() > 1 || left["message"] == right["message"]
}

/// Go prints pointers in some messages.
fn without_addresses(status: &Value) -> Value {
    let text = regex::Regex::new("0x[0-9a-f]+")
        .unwrap()
        .replace_all(&status.to_string(), "0x0")
        .into_owned();
    serde_json::from_str(&text).expect("replacing addresses keeps JSON valid")
}

fn difference(found: &Value, expected: &Value, path: &str, lines: &mut Vec<String>) {
    match (found, expected) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: std::collections::BTreeSet<&String> =
                left.keys().chain(right.keys()).collect();
            for key in keys {
                let inner = format!("{path}.{key}");
                match (left.get(key), right.get(key)) {
                    (Some(left), Some(right)) => difference(left, right, &inner, lines),
                    (left, right) => lines.push(format!("{inner}: {left:?} != {right:?}")),
                }
            }
        }
        _ if found != expected => lines.push(format!("{path}: {found} != {expected}")),
        _ => {}
    }
}

#[test]
fn accepted_creations_look_like_the_real_ones() {
    let mut failures = Vec::new();
    for recorded in recordings().iter().filter(|recorded| recorded.status == 201) {
        match create(recorded) {
            Ok(object) => {
                let mut lines = Vec::new();
                difference(&stable(&object), &stable(&recorded.response), "", &mut lines);
                if !lines.is_empty() {
                    let body = &recorded.body;
                    failures.push(format!(
                        "{} {body}\n  {}",
                        recorded.resource,
                        lines.join("\n  ")
                    ));
                }
            }
            Err(problems) => failures
                .push(format!("{} {}\n  refused: {problems:?}", recorded.resource, recorded.body)),
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn refused_creations_are_refused_with_the_same_causes() {
    let mut failures = Vec::new();
    for recorded in recordings().iter().filter(|recorded| recorded.status == 422) {
        let info = resource(recorded);
        let problems = create(recorded).err().unwrap_or_default();
        let name = recorded.body["metadata"]["name"].as_str().unwrap_or_default();
        let found = StatusError::invalid(&info.group, &info.kind, name, &problems).to_value();
        let expected = &recorded.response;
        let (found, expected) = (without_addresses(&found), without_addresses(expected));
        if causes(&found) != causes(&expected) || !same_message(&found, &expected) {
            failures.push(format!(
                "{} {}\n  found    {}\n  expected {}",
                recorded.resource, recorded.body, found["message"], expected["message"]
            ));
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
