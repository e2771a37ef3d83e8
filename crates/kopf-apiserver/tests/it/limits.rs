//! Expensive requests over HTTP: each gets a response that says why, and the server keeps working.

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use kopf_apiserver::{Listening, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::ServiceExt;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FOOS: &str = "/apis/t.io/v1/namespaces/default/foos";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

/// An answer as text.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

struct World {
    _server: Server,
    listening: Listening,
}

impl World {
    /// A server with a custom resource whose `spec` has this schema.
    async fn new(spec: &Value) -> (Self, Answer) {
        let server = Server::builder().controllers(false).build();
        let address = "127.0.0.1:0".parse().unwrap();
        let listening = server.listen_plain(address).await.unwrap();
        let world = Self { _server: server, listening };
        let created = world.send("POST", CRDS, JSON, &crd(spec).to_string()).await;
        (world, created)
    }

    async fn with_free_spec() -> Self {
        let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let (world, created) = Self::new(&free).await;
        assert_eq!(created.status, 201, "{}", created.body);
        world
    }

    async fn send(&self, method: &str, path: &str, content_type: &str, body: &str) -> Answer {
        send(self.listening.address(), method, path, content_type, body).await
    }
}

async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    content_type: &str,
    body: &str,
) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
         content-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    let status = head["HTTP/1.1 ".len()..][..3].parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

fn crd(spec: &Value) -> Value {
    crate::foos::definition(json!({
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }))
}

/// Nested objects of this depth as text, since dropping values is recursive.
fn nested(levels: usize) -> String {
    format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
}

fn foo(name: &str, levels: usize) -> String {
    let spec = nested(levels - 1);
    format!(
        "{{\"apiVersion\":\"t.io/v1\",\"kind\":\"Foo\",\"metadata\":{{\"name\":\"{name}\"}},\
         \"spec\":{spec}}}"
    )
}

/// Every way to write an object of this depth.
fn deep_writes(levels: usize) -> [(&'static str, String, &'static str, String); 6] {
    let object = format!("{FOOS}/a{levels}");
    let value = nested(levels - 2);
    let operation = format!("[{{\"op\":\"add\",\"path\":\"/spec/a\",\"value\":{value}}}]");
    [
        ("PATCH", format!("{object}?fieldManager=x"), APPLY, foo(&format!("a{levels}"), levels)),
        ("POST", FOOS.to_owned(), JSON, foo(&format!("j{levels}"), levels)),
        ("POST", FOOS.to_owned(), YAML, foo(&format!("y{levels}"), levels)),
        ("PATCH", format!("{FOOS}/a"), MERGE_PATCH, format!("{{\"spec\":{}}}", nested(levels - 1))),
        ("PATCH", format!("{FOOS}/a"), JSON_PATCH, operation),
        ("PATCH", format!("{FOOS}/a?fieldManager=y&force=1"), APPLY, foo("a", levels)),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_may_be_as_deep_as_the_limit_and_no_deeper() {
    let world = World::with_free_spec().await;
    world.send("POST", FOOS, JSON, &foo("a", 2)).await;
    for levels in [100, 127, 128, 129, 255] {
        for (method, path, content_type, body) in deep_writes(levels) {
            let answer = world.send(method, &path, content_type, &body).await;
            let said = answer.body;
            assert!(matches!(answer.status, 200 | 201), "{levels} {content_type}: {said}");
        }
    }
    for levels in [256, 1000, 100_000] {
        for (method, path, content_type, body) in deep_writes(levels) {
            let answer = world.send(method, &path, content_type, &body).await;
            let said = answer.body;
            assert_eq!(answer.status, 400, "{levels} {content_type}: {said}");
            assert!(said.contains("exceeded max depth (255 levels)"), "{content_type}: {said}");
        }
    }
    let listed = world.send("GET", FOOS, JSON, "").await;
    assert_eq!(listed.body.matches(&nested(254)).count(), 4, "three created and one patched");
    let watch = format!("{FOOS}?watch=1&timeoutSeconds=1&labelSelector=!x");
    let watched = world.send("GET", &watch, JSON, "").await;
    assert_eq!(watched.body.matches(&nested(254)).count(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_in_a_patch_do_not_make_objects_deeper() {
    let world = World::with_free_spec().await;
    world.send("POST", FOOS, JSON, &foo("a", 2)).await;
    let mut operations = vec![json!({"op": "add", "path": "/spec", "value": {"a": {}}})];
    // Each copy goes into the innermost object, so the depth doubles.
    for exponent in 0..18 {
        let path = format!("/spec{}", "/a".repeat((1 << exponent) + 1));
        operations.push(json!({"op": "copy", "from": "/spec/a", "path": path}));
    }
    let patch = Value::from(operations).to_string();
    let answer = world.send("PATCH", &format!("{FOOS}/a"), JSON_PATCH, &patch).await;
    assert_eq!(answer.status, 400, "{}", answer.body);
    assert!(answer.body.contains("exceeded max depth (255 levels)"), "{}", answer.body);
    assert_eq!(world.send("GET", &format!("{FOOS}/a"), JSON, "").await.status, 200);
}

/// Creates a definition with this rule and an object of it; returns both responses.
async fn judge(rule: &str) -> (Answer, Answer) {
    let spec = json!({
        "type": "object", "properties": {"a": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": rule, "messageExpression": format!("string({rule})")}],
    });
    let (world, defined) = World::new(&spec).await;
    let object = world.send("POST", FOOS, JSON, &foo("a", 2)).await;
    (defined, object)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deep_rules_are_refused_before_they_are_parsed() {
    let rules = |depth: usize| {
        let around = |open: &str, inner: &str, close: &str| {
            format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
        };
        [
            around("(", "self.a == 1", ")"),
            around("", &format!("{}self.a > 0", "1 + ".repeat(depth)), ""),
            around("self.a > 1 ? false : ", "self.a == 1", ""),
            format!("{} == 1", around("int(", "self.a", ")")),
            format!("size({}) == 1", around("[", "self.a", "]")),
        ]
    };
    for rule in rules(60) {
        let (defined, object) = judge(&rule).await;
        assert_eq!((defined.status, object.status), (201, 201), "{rule} {}", object.body);
    }
    for rule in rules(3000) {
        let (defined, object) = judge(&rule).await;
        assert_eq!((defined.status, object.status), (422, 404), "{rule}");
        assert!(defined.body.contains("expression recursion limit exceeded"), "{}", defined.body);
    }
}

#[tokio::test]
async fn loops_over_written_lists_count_as_well() {
    let list = format!("[{}1]", "1, ".repeat(99));
    let all = |inner: &str| format!("{list}.all(x, {inner})");
    let (defined, object) = judge(&all(&all("x == self.a"))).await;
    assert_eq!((defined.status, object.status), (201, 201), "{}", defined.body);
    let (defined, _) = judge(&all(&all(&all(&all(&all("x == self.a")))))).await;
    assert_eq!(defined.status, 422);
    assert!(defined.body.contains("estimated rule cost exceeds budget"), "{}", defined.body);
}

#[tokio::test]
async fn warnings_leave_the_head_of_an_answer_small() {
    let world = World::with_free_spec().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    map["größe"] = 1.into();
    let answer = world.send("POST", maps, JSON, &map.to_string()).await;
    assert!(answer.head.contains("299 - \"unknown field \\\"größe\\\"\""), "{}", answer.head);
    for index in 0..1000 {
        map[format!("field{index}-{}", "x".repeat(300))] = 1.into();
    }
    map["metadata"]["name"] = "b".into();
    let answer = world.send("POST", maps, JSON, &map.to_string()).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let warnings = answer.head.matches("299 - ").count();
    assert!((16..30).contains(&warnings) && answer.head.len() < 6000, "{}", answer.head);
}

#[tokio::test(start_paused = true)]
async fn connections_on_which_nothing_comes_are_closed() {
    let server = Server::builder().controllers(false).build();
    let address = "127.0.0.1:0".parse().unwrap();
    let plain = server.listen_plain(address).await.unwrap();
    let encrypted = server.listen(address).await.unwrap();
    // Half of the headers; no TLS handshake; nothing after a first request.
    let whole = "GET /version HTTP/1.1\r\nhost: x\r\n\r\n";
    for (address, sent) in [
        (plain.address(), "GET /version HTTP/1.1\r\nhost: x\r\n"),
        (encrypted.address(), ""),
        (plain.address(), whole),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let closing = stream.read_to_end(&mut answer);
        let closed = tokio::time::timeout(Duration::from_secs(600), closing).await;
        assert!(closed.is_ok(), "{sent:?} keeps a connection");
        assert_eq!(answer.starts_with(b"HTTP/1.1 200"), sent == whole);
    }
}

#[tokio::test]
async fn watches_end_in_time_even_if_there_are_always_events() {
    let server = Server::builder().controllers(false).build();
    let request = |method: &str, path: &str, content_type: &str, body: String| {
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("content-type", content_type).body(Full::from(body)).unwrap();
        server.service().oneshot(request)
    };
    let path = "/api/v1/namespaces/default";
    let watch = format!("{path}/events?watch=1&timeoutSeconds=1");
    let mut events = request("GET", &watch, JSON, String::new()).await.unwrap().into_body();
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"},
                       "involvedObject": {"namespace": "default"}});
    request("POST", &format!("{path}/events"), JSON, event.to_string()).await.unwrap();
    let started = std::time::Instant::now();
    while events.frame().await.is_some() {
        assert!(started.elapsed() < Duration::from_secs(5), "the watch goes on");
        let patch = json!({"message": format!("{:?}", started.elapsed())}).to_string();
        let event = format!("{path}/events/a");
        let answer = request("PATCH", &event, MERGE_PATCH, patch).await.unwrap();
        assert_eq!(answer.status(), 200);
        // Without this, time would stand still.
        tokio::task::yield_now().await;
    }
    assert!(started.elapsed() > Duration::from_millis(900));
}

#[tokio::test]
async fn patterns_that_are_expensive_to_compile_are_refused_before() {
    let properties: serde_json::Map<String, Value> = (0..300)
        .map(|number| {
            let pattern = format!(r"(\pL{{1,500}}){{1,10}}{number}");
            (format!("p{number}"), json!({"type": "string", "pattern": pattern}))
        })
        .collect();
    let (_, defined) = World::new(&json!({"type": "object", "properties": properties})).await;
    assert_eq!(defined.status, 422);
    assert!(defined.body.contains("invalid repeat count: `{1,10}`"), "{}", defined.body);
    let properties: serde_json::Map<String, Value> = (0..300)
        .map(|number| (format!("p{number}"), json!({"type": "string", "pattern": r"\pL{1,90}"})))
        .collect();
    let (_, defined) = World::new(&json!({"type": "object", "properties": properties})).await;
    assert_eq!(defined.status, 422);
    assert!(defined.body.contains("too large together"), "{}", defined.body);
}

#[tokio::test]
async fn rules_that_cost_too_much_are_cut_off() {
    let list = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    let nested = |levels: usize| {
        let all = (0..levels).map(|level| format!("{list}.all(x{level}, "));
        format!("{}self.a > 0{}", all.collect::<String>(), ")".repeat(levels))
    };
    let (defined, object) = judge(&nested(3)).await;
    assert_eq!((defined.status, object.status), (201, 201), "{}", object.body);
    let (defined, object) = judge(&nested(6)).await;
    assert_eq!((defined.status, object.status), (201, 422), "{}", object.body);
    assert!(object.body.contains("actual cost limit exceeded"), "{}", object.body);
    // Loops inside functions count as well.
    let list = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]";
    let mapped = format!(
        "{list}.map(a, {list}.map(b, {list}.map(c, {list}.map(d, {list}.map(e, 1))))).size() > self.a"
    );
    let (defined, object) = judge(&mapped).await;
    assert_eq!((defined.status, object.status), (201, 422), "{}", object.body);
    assert!(object.body.contains("actual cost limit exceeded"), "{}", object.body);
}

#[tokio::test]
async fn policies_that_cost_too_much_are_cut_off() {
    let world = World::with_free_spec().await;
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let expression = "object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != 'x')))";
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["configmaps"]}]},
            "validations": [{"expression": expression}],
        },
    });
    let answer = world.send("POST", policies, JSON, &policy.to_string()).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "p"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    });
    let bindings = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    let answer = world.send("POST", bindings, JSON, &binding.to_string()).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let maps = "/api/v1/namespaces/default/configmaps";
    for (keys, status) in [(10, 201), (2000, 422)] {
        let data: serde_json::Map<String, Value> =
            (0..keys).map(|key| (format!("k{key}"), json!("v"))).collect();
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
                         "metadata": {"name": format!("m{keys}")}, "data": data});
        let answer = world.send("POST", maps, JSON, &map.to_string()).await;
        assert_eq!(answer.status, status, "{keys}: {}", answer.body);
        assert_eq!(answer.body.contains("cost limit exceeded"), status == 422, "{}", answer.body);
    }
}

#[tokio::test]
async fn expensive_rules_do_not_stall_other_requests() {
    let list = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    let loops: String = (0..6).map(|level| format!("{list}.all(x{level}, ")).collect();
    let rule = format!("{loops}self.a > 0{}", ")".repeat(6));
    let rules: Vec<Value> = (0..10).map(|_| json!({"rule": rule})).collect();
    let spec = json!({
        "type": "object", "properties": {"a": {"type": "integer"}},
        "x-kubernetes-validations": rules,
    });
    let (world, defined) = World::new(&spec).await;
    assert_eq!(defined.status, 201, "{}", defined.body);
    let address = world.listening.address();
    let object = foo("a", 2);
    let mut expensive = std::pin::pin!(send(address, "POST", FOOS, JSON, &object));
    // The test has one thread, which it shares with the server.
    for _ in 0..5 {
        tokio::select! {
            biased;
            answer = &mut expensive => panic!("{} came first", answer.status),
            answer = send(address, "GET", "/version", JSON, "") => assert_eq!(answer.status, 200),
        }
    }
    assert_eq!(expensive.await.status, 422);
}
