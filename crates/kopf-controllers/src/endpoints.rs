//! Publishes the pods behind Services as Endpoints and EndpointSlices.
//!
//! Fidelity: selectors, named target ports, ready and unready addresses, publishNotReadyAddresses,
//! headless services, owner references and labels same as upstream. One slice per service
//! regardless of its size; IPv4 only; no topology hints.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::collections::{ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES};
use super::fields::{self, at, flag, items, text};
use super::label_selectors;
use super::pod_state;
use super::world::{Action, Change, Controller, Interest, Key, Outcome, Propagation, Seen, World};

const SERVICE_LABEL: &str = "kubernetes.io/service-name";
const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
const MANAGER_LABEL: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ServiceEndpoints;

impl Controller for ServiceEndpoints {
    fn name(&self) -> &'static str {
        "endpoints"
    }

    fn interest(&self) -> Interest {
        Interest::Collections(vec![SERVICES, PODS, ENDPOINTS, ENDPOINT_SLICES])
    }

    fn concerned(&mut self, change: &Change, world: &dyn World) -> Vec<Key> {
        let object = change.object();
        let namespace = fields::namespace(object);
        if change.collection == SERVICES || change.collection == ENDPOINTS {
            return vec![Key::new(SERVICES, namespace, fields::name(object))];
        }
        if change.collection == ENDPOINT_SLICES {
            let service = fields::label(object, SERVICE_LABEL);
            return service.map(|name| Key::new(SERVICES, namespace, name)).into_iter().collect();
        }
        let states = [change.old.as_ref(), change.new.as_ref()];
        world
            .list(&SERVICES, Some(namespace))
            .iter()
            .filter(|service| {
                let pairs = at(service, &["spec", "selector"]);
                states.iter().flatten().any(|pod| label_selectors::contains_pairs(pairs, pod))
            })
            .map(|service| Key::of(SERVICES, service))
            .collect()
    }

    fn reconcile(&mut self, key: &Key, world: &dyn World, now: Timestamp) -> Outcome {
        let mut outcome = Outcome::nothing();
        let endpoints_key = Key::new(ENDPOINTS, &key.namespace, &key.name);
        let Some(service) = world.get(key) else {
            if let Some(endpoints) = world.get(&endpoints_key).filter(|found| is_ours(found)) {
                outcome.push(Action::Delete {
                    key: endpoints_key,
                    uid: fields::uid(&endpoints).to_owned(),
                    propagation: Some(Propagation::Background),
                    grace_seconds: None,
                });
            }
            return outcome;
        };
        let pairs = at(&service, &["spec", "selector"]);
        let has_selector = pairs.and_then(Value::as_object).is_some_and(|map| !map.is_empty());
        if !has_selector
            || text(&service, &["spec", "type"]) == "ExternalName"
            || fields::is_deleting(&service)
        {
            return outcome;
        }
        let pods: Vec<Seen> = world
            .list(&PODS, Some(&key.namespace))
            .into_iter()
            .filter(|pod| label_selectors::contains_pairs(pairs, pod))
            .filter(|pod| {
                !pod_state::is_finished(pod) && !text(pod, &["status", "podIP"]).is_empty()
            })
            .collect();
        let backing = Backing { service: &service, pods };
        let endpoints = backing.endpoints();
        let present = world.get(&endpoints_key);
        write(&endpoints_key, present, endpoints, "subsets", now, &mut outcome);
        let slices: Vec<Seen> = world
            .list(&ENDPOINT_SLICES, Some(&key.namespace))
            .into_iter()
            .filter(|slice| {
                fields::label(slice, SERVICE_LABEL) == Some(&key.name)
                    && fields::label(slice, MANAGER_LABEL) == Some(MANAGER)
            })
            .collect();
        let slice_key = slices.first().map_or_else(
            || Key::new(ENDPOINT_SLICES, &key.namespace, ""),
            |slice| Key::of(ENDPOINT_SLICES, slice),
        );
        write(&slice_key, slices.first().cloned(), backing.slice(), "endpoints", now, &mut outcome);
        outcome
    }
}

fn is_ours(endpoints: &Value) -> bool {
    fields::label(endpoints, "endpoints.kubernetes.io/managed-by").is_some()
}

/// Creates `wanted`, or updates the existing object if `field`, `ports` or labels differ.
fn write(
    key: &Key,
    present: Option<Seen>,
    mut wanted: Value,
    field: &str,
    now: Timestamp,
    outcome: &mut Outcome,
) {
    let stamp = json!(fields::stamp(now));
    let Some(present) = present else {
        fields::set(&mut wanted, &["metadata", "annotations", TRIGGER_TIME], stamp);
        outcome.push(Action::Create { collection: key.collection.clone(), object: wanted });
        return;
    };
    let mut object = (*present).clone();
    for name in [field, "ports"] {
        match wanted.get(name) {
            Some(value) => object[name] = value.clone(),
            None => fields::unset(&mut object, &[name]),
        }
    }
    object["metadata"]["labels"] = wanted["metadata"]["labels"].clone();
    if object != *present {
        fields::set(&mut object, &["metadata", "annotations", TRIGGER_TIME], stamp);
        outcome.push(Action::Update { key: key.clone(), subresource: "", object });
    }
}

struct Backing<'a> {
    service: &'a Value,
    pods: Vec<Seen>,
}

impl Backing<'_> {
    fn is_ready(&self, pod: &Value) -> bool {
        flag(self.service, &["spec", "publishNotReadyAddresses"])
            || (pod_state::is_ready(pod) && !fields::is_deleting(pod))
    }

    fn is_headless(&self) -> bool {
        text(self.service, &["spec", "clusterIP"]) == "None"
    }

    fn labels(&self) -> Map<String, Value> {
        let labels = at(self.service, &["metadata", "labels"]).and_then(Value::as_object);
        let mut labels = labels.cloned().unwrap_or_default();
        if self.is_headless() {
            labels.insert("service.kubernetes.io/headless".into(), json!(""));
        }
        labels
    }

    /// The service's ports on the pods; named target ports are taken from the first pod.
    fn ports(&self) -> Vec<Value> {
        items(self.service, &["spec", "ports"])
            .iter()
            .filter_map(|port| {
                let number = self.target_port(port)?;
                let mut found = Map::new();
                for field in ["name", "appProtocol"] {
                    if let Some(value) = port.get(field) {
                        found.insert(field.into(), value.clone());
                    }
                }
                found.insert("port".into(), json!(number));
                let protocol = port.get("protocol").cloned().unwrap_or_else(|| json!("TCP"));
                found.insert("protocol".into(), protocol);
                Some(Value::Object(found))
            })
            .collect()
    }

    fn target_port(&self, port: &Value) -> Option<i64> {
        let Some(target) = port.get("targetPort").filter(|target| !target.is_null()) else {
            return fields::number(port, &["port"]);
        };
        if let Some(number) = target.as_i64() {
            return Some(number);
        }
        let name = target.as_str()?;
        if let Ok(number) = name.parse() {
            return Some(number);
        }
        self.pods
            .iter()
            .flat_map(|pod| items(pod, &["spec", "containers"]))
            .flat_map(|container| items(container, &["ports"]))
            .find(|port| text(port, &["name"]) == name)
            .and_then(|port| fields::number(port, &["containerPort"]))
    }

    fn target_reference(pod: &Value) -> Value {
        json!({
            "kind": "Pod",
            "namespace": fields::namespace(pod),
            "name": fields::name(pod),
            "uid": fields::uid(pod),
        })
    }

    fn endpoints(&self) -> Value {
        let address = |pod: &Seen| {
            let mut address = json!({ "ip": pod["status"]["podIP"] });
            let hostname = text(pod, &["spec", "hostname"]);
            let subdomain = text(pod, &["spec", "subdomain"]);
            if !hostname.is_empty() && subdomain == fields::name(self.service) {
                address["hostname"] = json!(hostname);
            }
            address["nodeName"] = pod["spec"]["nodeName"].clone();
            address["targetRef"] = Self::target_reference(pod);
            address
        };
        let (ready, unready): (Vec<&Seen>, Vec<&Seen>) =
            self.pods.iter().partition(|pod| self.is_ready(pod));
        let mut labels = self.labels();
        labels.insert("endpoints.kubernetes.io/managed-by".into(), json!("endpoint-controller"));
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {
                "name": fields::name(self.service),
                "namespace": fields::namespace(self.service),
                "labels": labels,
            },
        });
        let mut subset = Map::new();
        for (field, pods) in [("addresses", ready), ("notReadyAddresses", unready)] {
            if !pods.is_empty() {
                let addresses = pods.into_iter().map(address).collect();
                subset.insert(field.into(), Value::Array(addresses));
            }
        }
        if !subset.is_empty() {
            let ports = self.ports();
            if !ports.is_empty() {
                subset.insert("ports".into(), Value::Array(ports));
            }
            object["subsets"] = json!([subset]);
        }
        object
    }

    fn slice(&self) -> Value {
        let endpoints: Vec<Value> = self
            .pods
            .iter()
            .map(|pod| {
                let is_serving = pod_state::is_ready(pod);
                json!({
                    "addresses": [pod["status"]["podIP"]],
                    "conditions": {
                        "ready": self.is_ready(pod),
                        "serving": is_serving,
                        "terminating": fields::is_deleting(pod),
                    },
                    "targetRef": Self::target_reference(pod),
                    "nodeName": pod["spec"]["nodeName"],
                })
            })
            .collect();
        let mut labels = self.labels();
        labels.insert(SERVICE_LABEL.into(), json!(fields::name(self.service)));
        labels.insert(MANAGER_LABEL.into(), json!(MANAGER));
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "generateName": format!("{}-", fields::name(self.service)),
                "namespace": fields::namespace(self.service),
                "labels": labels,
                "ownerReferences": [fields::controller_reference(self.service, "v1", "Service")],
            },
            "addressType": "IPv4",
            "endpoints": none_if_empty(endpoints),
            "ports": if self.pods.is_empty() { Value::Null } else { none_if_empty(self.ports()) },
        })
    }
}

/// Go prints an absent list as null.
fn none_if_empty(list: Vec<Value>) -> Value {
    if list.is_empty() { Value::Null } else { Value::Array(list) }
}
