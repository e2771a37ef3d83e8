//! Malformed requests of every kind: the server answers each, and never with an internal error.
//!
//! Valid requests are mutated byte by byte: bodies in every encoding, the four patch types, applied
//! configurations, selectors, options, paths, headers. Each runs in a fork of one server, so a
//! number is enough to reproduce it: `FUZZ_SEED=7 FUZZ_ROUNDS=1`.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use http::Request;
use http_body_util::{BodyExt, Full};
use kopf_apiserver::Server;
use serde_json::{Value, json};
use tower::ServiceExt;

const ROUNDS: u64 = 1500;

/// A valid request, before it is mutated.
#[derive(Clone)]
struct Seed {
    method: &'static str,
    target: String,
    content_type: &'static str,
    accept: &'static str,
    body: Vec<u8>,
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const FOOS: &str = "/apis/t.io/v1/namespaces/default/foos";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Strings that decoders and parsers treat specially.
const TOKENS: [&[u8]; 40] = [
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"\"\"",
    b"-1",
    b"1e400",
    b"9223372036854775808",
    b"0.1",
    b"\\u0000",
    b"\\ud800",
    b"\xff\xfe",
    b"{\"a\":",
    b"[[[[",
    b"%00",
    b"%2F",
    b"%",
    b"&watch=1",
    b"&limit=-1",
    b"&continue=e30",
    b"&resourceVersion=x",
    b"=",
    b"!=",
    b" in (",
    b"),(",
    b"!",
    b"$patch",
    b"$retainKeys",
    b"$setElementOrder/a",
    b"/~1~0/-",
    b"metadata",
    b"kind",
    b"*a",
    b"&a ",
    b"<<: *a",
    b"---\n",
    b"!!binary ",
    b"k8s\0",
    b"\x0a\xff\xff\xff\xff\x0f",
    b"\n- ",
];

fn crd() -> Value {
    crate::foos::definition(json!({
        "subresources": {"status": {}, "scale": {
            "specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
        "selectableFields": [{"jsonPath": ".spec.s"}],
        "additionalPrinterColumns": [
            {"name": "N", "type": "integer", "jsonPath": ".spec.n"}],
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "required": ["n"],
                "x-kubernetes-validations": [
                    {"rule": "self.n < 9 && self.l.all(x, size(x) < 9)", "message": "m"}],
                "properties": {
                    "n": {"type": "integer", "default": 1},
                    "s": {"type": "string", "pattern": "^[a-z]*$", "maxLength": 20},
                    "l": {"type": "array", "items": {"type": "string"}, "maxItems": 5,
                        "x-kubernetes-list-type": "set", "default": []},
                    "i": {"x-kubernetes-int-or-string": true},
                }},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}},
    }))
}

fn foo() -> Value {
    json!({"apiVersion": "t.io/v1", "kind": "Foo", "metadata": {"name": "f"},
           "spec": {"n": 2, "s": "abc", "l": ["a", "b"], "i": "5%"}})
}

fn map() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
           "metadata": {"name": "m", "labels": {"app": "x", "tier": "z"},
                        "annotations": {"k": "v"}, "finalizers": ["a.io/b"],
                        "ownerReferences": [
                            {"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "u"}]},
           "data": {"k": "v", "k2": ""}, "binaryData": {"b": "AAE="}})
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
           "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": {
               "metadata": {"labels": {"a": "b"}},
               "spec": {"containers": [{
                   "name": "c", "image": "i", "ports": [{"containerPort": 80, "name": "web"}],
                   "env": [{"name": "E", "value": "1"}],
                   "resources": {"limits": {"cpu": "100m", "memory": "1Gi"}},
                   "readinessProbe": {"httpGet": {"port": "web", "path": "/"}}}],
                   "volumes": [{"name": "v", "emptyDir": {}}]}}}})
}

fn policy() -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
           "metadata": {"name": "p"}, "spec": {
               "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                   "operations": ["CREATE"], "resources": ["configmaps"]}]},
               "validations": [{"expression": "object.metadata.name.startsWith('a') || true"}]}})
}

/// `Unknown{typeMeta, raw}` around a ConfigMap, as Go clients send it.
fn protobuf_map() -> Vec<u8> {
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).expect("a short message");
        [&[number << 3 | 2, length], bytes].concat()
    }
    let type_meta = [field(1, b"v1"), field(2, b"ConfigMap")].concat();
    let metadata = [field(1, b"m"), field(11, &[field(1, b"app"), field(2, b"x")].concat())];
    let data = [field(1, b"k"), field(2, b"v")].concat();
    let object = [field(1, &metadata.concat()), field(2, &data)].concat();
    [b"k8s\0".to_vec(), field(1, &type_meta), field(2, &object)].concat()
}

fn seed(method: &'static str, target: &str, content_type: &'static str, body: &Value) -> Seed {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Seed { method, target: target.to_owned(), content_type, accept: JSON, body }
}

/// Creations and replacements, in every encoding.
fn written() -> Vec<Seed> {
    let mut seeds = vec![
        seed("POST", MAPS, JSON, &map()),
        seed("POST", &format!("{FOOS}?fieldValidation=Strict&dryRun=All"), JSON, &foo()),
        seed("POST", &format!("{DEPLOYMENTS}?fieldManager=x"), JSON, &deployment()),
        seed("POST", CRDS, JSON, &crd()),
        seed(
            "POST",
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            JSON,
            &policy(),
        ),
        seed("PUT", &format!("{MAPS}/m"), JSON, &map()),
        seed("PUT", &format!("{FOOS}/f/status"), JSON, &foo()),
        seed("PUT", &format!("{CRDS}/foos.t.io"), JSON, &crd()),
        seed(
            "PUT",
            &format!("{DEPLOYMENTS}/d/scale"),
            JSON,
            &json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": "d", "namespace": "default"}, "spec": {"replicas": 3}}),
        ),
        seed(
            "POST",
            "/api/v1/namespaces/default/serviceaccounts/sa/token",
            JSON,
            &json!({
            "spec": {"audiences": ["a"], "expirationSeconds": 600}}),
        ),
        seed(
            "POST",
            "/api/v1/namespaces/default/pods/p/binding",
            JSON,
            &json!({
            "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}),
        ),
        seed(
            "POST",
            "/api/v1/namespaces/default/pods/p/eviction",
            JSON,
            &json!({
            "metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 1}}),
        ),
        seed(
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            JSON,
            &json!({
            "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
        ),
        seed(
            "DELETE",
            &format!("{MAPS}/m"),
            JSON,
            &json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground",
            "preconditions": {"uid": "u"}, "gracePeriodSeconds": 0}),
        ),
    ];
    for (path, object) in [(MAPS, map()), (FOOS, foo()), (DEPLOYMENTS, deployment())] {
        let text = serde_norway::to_string(&object).unwrap();
        seeds.push(Seed { body: text.into_bytes(), ..seed("POST", path, YAML, &Value::Null) });
    }
    seeds.push(Seed { body: protobuf_map(), ..seed("POST", MAPS, PROTOBUF, &Value::Null) });
    seeds
}

/// The four patch types on built-in and custom objects.
fn patched() -> Vec<Seed> {
    let operations = json!([
        {"op": "test", "path": "/metadata/name", "value": "m"},
        {"op": "add", "path": "/data/x~1y", "value": "1"},
        {"op": "move", "from": "/data/k", "path": "/data/z"},
        {"op": "copy", "from": "/data/k2", "path": "/data/k3"},
        {"op": "remove", "path": "/metadata/finalizers/0"}]);
    let containers = json!({"spec": {"template": {"spec": {
        "$setElementOrder/containers": [{"name": "c"}, {"name": "e"}],
        "$retainKeys": ["containers"],
        "containers": [{"name": "e", "image": "j"}, {"$patch": "delete", "name": "c"}]}}}});
    let spec = json!({"spec": {"n": 3, "s": null, "l": ["c"]}});
    let json_patch = "application/json-patch+json";
    let merge = "application/merge-patch+json";
    let strategic = "application/strategic-merge-patch+json";
    let apply = "application/apply-patch+yaml";
    let foos = format!("{FOOS}/f?fieldManager=a&force=true");
    vec![
        seed("PATCH", &format!("{MAPS}/m"), json_patch, &operations),
        seed(
            "PATCH",
            &format!("{DEPLOYMENTS}/d"),
            json_patch,
            &json!([
            {"op": "replace", "path": "/spec/template/spec/containers/0/env/0", "value": 1}]),
        ),
        seed("PATCH", &format!("{MAPS}/m"), merge, &json!({"data": {"k": null, "n": "1"}})),
        seed("PATCH", &format!("{FOOS}/f"), merge, &spec),
        seed("PATCH", &format!("{FOOS}/f/status"), merge, &json!({"status": {"n": 1}})),
        seed("PATCH", &format!("{FOOS}/f/scale"), merge, &json!({"spec": {"replicas": 3}})),
        seed("PATCH", &format!("{DEPLOYMENTS}/d"), strategic, &containers),
        seed("PATCH", &foos, apply, &foo()),
        seed("PATCH", &format!("{MAPS}/m?fieldManager=b"), apply, &map()),
        seed("PATCH", &format!("{DEPLOYMENTS}/d?fieldManager=c"), apply, &deployment()),
    ]
}

/// Reads: selectors, options, versions, representations, documents.
fn read() -> Vec<Seed> {
    let targets = [
        format!("{MAPS}?labelSelector=app%20in%20(x,y),tier!=z,!gone,app"),
        format!("{MAPS}?fieldSelector=metadata.name%3Dm,metadata.namespace!%3Dq"),
        format!("{FOOS}?fieldSelector=spec.s%3Dabc&limit=1"),
        format!("{MAPS}?limit=1&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0"),
        format!("{MAPS}?resourceVersion=1&resourceVersionMatch=Exact"),
        format!("{MAPS}?watch=true&timeoutSeconds=1&allowWatchBookmarks=true"),
        format!("{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"),
        format!("{MAPS}/m?pretty=true"),
        format!("{DEPLOYMENTS}/d/scale"),
        "/api/v1/namespaces/default/pods/p/log?tailLines=1&container=c".to_owned(),
        "/apis".to_owned(),
        "/openapi/v3/apis/apps/v1?hash=1".to_owned(),
        "/openapi/v2".to_owned(),
        "/readyz?verbose&exclude=x".to_owned(),
        "/apis/apps/v1/watch/namespaces/default/deployments/d?timeoutSeconds=1".to_owned(),
    ];
    let accepts = [
        JSON,
        TABLE,
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        YAML,
    ];
    let pairs =
        targets.iter().flat_map(|target| accepts.iter().map(move |accept| (target, accept)));
    pairs.map(|(target, accept)| Seed { accept, ..seed("GET", target, "", &Value::Null) }).collect()
}

/// Mutates one to four places.
fn mutate(random: &mut fastrand::Rng, bytes: &mut Vec<u8>) {
    for _ in 0..random.usize(1..=4) {
        let at = random.usize(0..=bytes.len());
        let until = (at + random.usize(0..=8)).min(bytes.len());
        match random.u8(0..7) {
            0 if at < bytes.len() => bytes[at] = random.u8(..),
            1 if at < bytes.len() => bytes[at] ^= 1 << random.u8(0..8),
            2 => drop(bytes.drain(at..until)),
            3 => drop(bytes.splice(at..until, random.choice(TOKENS).unwrap_or_default().to_vec())),
            4 => drop(bytes.splice(at..at, bytes[at..until].to_vec())),
            5 => bytes.truncate(at),
            _ => bytes.insert(at, random.u8(..)),
        }
    }
}

/// A request target can contain only some bytes; others are percent-encoded.
fn printable(bytes: &[u8]) -> String {
    let shown = bytes.iter().map(|byte| match byte {
        b'#' | b'"' | b'<' | b'>' | b'`' | b'{' | b'}' | b'\\' | b'^' | b'|' => {
            format!("%{byte:02X}")
        }
        0x21..=0x7e => char::from(*byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    let text: String = shown.collect();
    if text.starts_with('/') { text } else { format!("/{text}") }
}

fn broken(random: &mut fastrand::Rng, seeds: &[Seed]) -> Seed {
    let mut chosen = random.choice(seeds).expect("there are seeds").clone();
    let breaks_target = chosen.body.is_empty() || random.u8(0..4) == 0;
    if breaks_target {
        let mut target = chosen.target.into_bytes();
        mutate(random, &mut target);
        chosen.target = printable(&target);
    }
    if !chosen.body.is_empty() && (!breaks_target || random.bool()) {
        mutate(random, &mut chosen.body);
    }
    if random.u8(0..12) == 0 {
        let types = [JSON, YAML, PROTOBUF, "application/apply-patch+yaml", "text/plain", "x", ""];
        chosen.content_type = random.choice(types).unwrap_or_default();
    }
    if random.u8(0..12) == 0 {
        let methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"];
        chosen.method = random.choice(methods).unwrap_or_default();
    }
    chosen
}

/// Responses beyond 499 that the real server also gives.
fn is_recorded_failure(status: u16, body: &str) -> bool {
    const RECORDED: [&str; 20] = [
        "expected a []interface",
        "cannot merge lists without merge key",
        "list element types are not identical",
        "merging lists cannot yet be specified",
        "doesn't match $setElementOrder list",
        "unknown patch type",
        "target.name: Required value",
        "target.kind: Unsupported value",
        "does not contain declared merge key",
        "strconv.ParseUint",
        "resourceVersion should not be set on objects to be created",
        "Too large resource version",
        "required revision is a future revision",
        "couldn't get version/kind",
        "no kind ",
        "does not exist",
        "failed to convert new object",
        "failed to create typed",
        "failed calling webhook",
        "cannot unmarshal",
    ];
    status == 501 || RECORDED.iter().any(|words| body.contains(words))
}

async fn world() -> Server {
    let server = Server::builder().controllers(false).build();
    let objects = [
        crd(),
        foo(),
        map(),
        deployment(),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
               "spec": {"containers": [{"name": "c", "image": "i"}]}}),
    ];
    for object in objects {
        server.load_yaml(&object.to_string()).await.unwrap();
    }
    server
}

async fn send(server: &Server, sent: &Seed) -> (u16, String) {
    let mut request = Request::builder().method(sent.method).uri(&sent.target);
    for (name, value) in [("content-type", sent.content_type), ("accept", sent.accept)] {
        if !value.is_empty() {
            request = request.header(name, value);
        }
    }
    let Ok(request) = request.body(Full::new(sent.body.clone().into())) else {
        // No HTTP client can send this.
        return (400, String::new());
    };
    let response = server.service().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    if status < 500 && sent.target.contains("watch") {
        return (status, String::new());
    }
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned())
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

async fn throw_at_the_server(seeds: Vec<Seed>) {
    let world = world().await;
    let first = number("FUZZ_SEED", 0);
    for round in first..first + number("FUZZ_ROUNDS", ROUNDS) {
        let mut random = fastrand::Rng::with_seed(round);
        let sent = broken(&mut random, &seeds);
        let fork = world.fork();
        let answer = AssertUnwindSafe(send(&fork, &sent)).catch_unwind().await;
        let shown = || {
            let body = String::from_utf8_lossy(&sent.body);
            format!("seed {round}: {} {} {}\n{body}", sent.method, sent.target, sent.content_type)
        };
        match answer {
            Err(_) => panic!("a panic at {}", shown()),
            Ok((status, body)) if status >= 500 && !is_recorded_failure(status, &body) => {
                panic!("{status} at {}\n{body}", shown());
            }
            Ok(_) => {}
        }
    }
}

#[tokio::test]
async fn broken_bodies_are_the_fault_of_clients() {
    throw_at_the_server(written()).await;
}

#[tokio::test]
async fn broken_patches_are_the_fault_of_clients() {
    throw_at_the_server(patched()).await;
}

#[tokio::test]
async fn broken_reads_are_the_fault_of_clients() {
    throw_at_the_server(read()).await;
}

#[tokio::test]
async fn unbroken_seeds_are_understood() {
    let world = world().await;
    for sent in written().iter().chain(&patched()) {
        let (status, body) = send(&world.fork(), sent).await;
        let is_fine = status < 300 || matches!(status, 409 | 422);
        assert!(is_fine, "{} {} is {status}: {body}", sent.method, sent.target);
    }
}
