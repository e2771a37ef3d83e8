//! Replays exchanges that were recorded from a real server and measures how many responses are
//! equal.
//!
//! The numbers in `data/*-parity.txt` may only increase. `GOLDENS_REPORT=FOLDER` writes every
//! difference to a file in that folder.

mod webhooks;

use std::fmt::Write as _;
use std::time::Duration;

use futures::future::BoxFuture;
use http::Request;
use http_body_util::{BodyExt, Full};
use kopf_apiserver::{Clock, Server, User};
use serde_json::{Value, json};
use tower::ServiceExt;

use fidelity::normalise::{Normaliser, Translation};
use fidelity::pairing::{Difference, Pairing};

/// Exchanges from one recording session.
struct Recording {
    name: &'static str,
    lines: &'static [u8],
    /// The minimum to reach.
    ratchet: &'static str,
    /// Whether the recorded cluster had a node.
    nodes: bool,
    /// Whether the recorder put spaces between JSON tokens, which some messages quote.
    spaces: bool,
}

/// Recorded by a script with Python's `requests`.
const BY_HAND: Recording = Recording {
    name: "goldens",
    lines: include_bytes!("../data/goldens-1.33.13.jsonl.zst"),
    ratchet: include_str!("../data/goldens-parity.txt"),
    nodes: true,
    spaces: true,
};

/// Recorded by `cargo xtask record`.
const BY_SCRIPTS: Recording = Recording {
    name: "scripts",
    lines: include_bytes!("../data/scripts-1.33.13.jsonl.zst"),
    ratchet: include_str!("../data/scripts-parity.txt"),
    nodes: false,
    spaces: false,
};

/// How often a read is repeated until it returns what the recorder waited for.
const WAITS_MAX: usize = 50;

/// Real time, but short sleeps: recorded watches last for seconds.
struct ShortSleeps;

impl Clock for ShortSleeps {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration / 10))
    }
}

fn recorded(recording: &Recording) -> Vec<Value> {
    let text = zstd::decode_all(recording.lines).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The recorder polled until something had happened: of equal reads, only the last one counts.
    let is_poll = |index: usize| {
        let same =
            |key: &str| lines.get(index + 1).is_some_and(|next| next[key] == lines[index][key]);
        lines[index]["method"] == "GET" && same("method") && same("path") && same("headers")
    };
    (0..lines.len()).filter(|index| !is_poll(*index)).map(|index| lines[index].clone()).collect()
}

/// Tokens are scrubbed; the response shows which user it was.
fn credentials(golden: &Value) -> Option<String> {
    let impersonates =
        golden["headers"].as_object().unwrap().keys().any(|name| name.starts_with("Impersonate"));
    let message = golden["response"]["message"].as_str().unwrap_or_default();
    if golden["status"] == 401 {
        return Some("Bearer wrong".to_owned());
    }
    (message.contains("User \"alice\"") && !impersonates).then(|| "Bearer alice".to_owned())
}

fn request(golden: &Value, translation: &Translation, spaces: bool) -> Request<Full<bytes::Bytes>> {
    let method = golden["method"].as_str().unwrap();
    let mut path = translation.apply(golden["path"].as_str().unwrap());
    if method == "WATCH" && !path.contains("/watch/") && !path.contains("watch=") {
        path.push(if path.contains('?') { '&' } else { '?' });
        path.push_str("watch=true");
    }
    let method = if method == "WATCH" { "GET" } else { method };
    let mut request = Request::builder().method(method).uri(path);
    request = request.header("User-Agent", "python-requests/2.32");
    request = request.header("Host", "127.0.0.1:16443");
    for (name, value) in golden["headers"].as_object().unwrap() {
        // An empty header was not sent at all, except that empty credentials mean an anonymous
        // user.
        if value != "" || name == "Authorization" {
            request = request.header(name, value.as_str().unwrap());
        }
    }
    if let Some(credentials) = credentials(golden) {
        request = request.header("Authorization", credentials);
    }
    let body = match &golden["body"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        body if spaces => python_json(body),
        body => body.to_string(),
    };
    let body = webhooks::fill_bundle(&translation.apply(&body));
    request.body(Full::new(body.into())).unwrap()
}

/// Whether a response shows what the recorder waited for, if it waited.
fn is_awaited(golden: &Value, live: &Value) -> bool {
    let wait = &golden["wait"];
    let text = live["response"].to_string();
    let texts = |key: &str| wait[key].as_array().cloned().unwrap_or_default();
    let is_in = |part: &Value| text.contains(part.as_str().unwrap_or_default());
    (wait["status"].is_null() || wait["status"] == live["status"])
        && (wait["has"].is_null() || is_in(&wait["has"]))
        && !texts("lacks").iter().any(is_in)
}

async fn exchange(
    server: &Server,
    golden: &Value,
    translation: &Translation,
    spaces: bool,
) -> Value {
    let request = request(golden, translation, spaces);
    let response = server.service_as(admin()).oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let header = |name: &str| {
        let texts: Vec<&str> =
            response.headers().get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    };
    let (content_type, warning) = (header("content-type"), header("warning"));
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let text = webhooks::scrub_bundle(std::str::from_utf8(&body).unwrap());
    if golden["method"] == "WATCH" {
        let events: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        return json!({"status": status, "events": events});
    }
    let parsed = serde_json::from_str(&text).unwrap_or(Value::String(text));
    json!({
        "status": status, "contentType": content_type, "warning": warning, "response": parsed,
    })
}

fn essence(line: &Value, normaliser: &mut Normaliser) -> Value {
    let mut essence = json!({"status": line["status"]});
    if let Some(events) = line["events"].as_array() {
        essence["events"] = normaliser.events(events);
        return essence;
    }
    essence["contentType"] = line["contentType"].clone();
    essence["response"] = normaliser.value(&line["response"]);
    if let Some(warning) = line["warning"].as_str() {
        essence["warning"] = normaliser.text(warning).into();
    }
    essence
}

/// What programs depend on: status, reason, the fields and reasons of causes, event types.
fn decisive(line: &Value) -> Value {
    let response = &line["response"];
    let mut decisive = json!({"status": line["status"]});
    if response["kind"] == "Status" {
        decisive["reason"] = response["reason"].clone();
        let causes = response["details"]["causes"].as_array().cloned().unwrap_or_default();
        decisive["causes"] =
            causes.iter().map(|cause| json!([cause["reason"], cause["field"]])).collect();
    }
    if let Some(events) = line["events"].as_array() {
        decisive["events"] = events
            .iter()
            .map(|event| event["type"].clone())
            .filter(|kind| *kind != "BOOKMARK")
            .collect();
    }
    decisive
}

fn is_wording(difference: &Difference) -> bool {
    let last = difference.pointer.rsplit('/').next().unwrap_or_default();
    difference.judge.is_some()
        && difference.subject.is_some()
        && matches!(last, "message" | "warning")
}

#[derive(Default)]
struct Parity {
    exchanges: usize,
    decisive: usize,
    bodies: usize,
    bodies_but_wording: usize,
    report: String,
}

impl Parity {
    fn count(&mut self, index: usize, golden: &Value, live: &Value, differences: &[Difference]) {
        self.exchanges += 1;
        let same = decisive(golden) == decisive(live);
        self.decisive += usize::from(same);
        self.bodies += usize::from(differences.is_empty());
        self.bodies_but_wording += usize::from(differences.iter().all(is_wording));
        if differences.is_empty() {
            return;
        }
        let mark = if same { "body" } else { "STATUS" };
        let (method, path) = (&golden["method"], &golden["path"]);
        let section = &golden["section"];
        let _ = writeln!(self.report, "#{index} {mark} {section} {method} {path}");
        for difference in differences.iter().take(12) {
            let (judge, subject) = (&difference.judge, &difference.subject);
            let shown = |value: &Option<Value>| {
                value.as_ref().map_or("-".to_owned(), |value| value.to_string())
            };
            let _ = writeln!(
                self.report,
                "    {}\n      want {}\n      got  {}",
                difference.pointer,
                shown(judge),
                shown(subject)
            );
        }
    }
}

/// Whether both sides have read the same version of an object.
fn is_same_state(golden: &Value, live: &Value, translation: &Translation) -> bool {
    let version = |line: &Value| -> Option<String> {
        line["response"]["metadata"]["resourceVersion"].as_str().map(str::to_owned)
    };
    let expected = version(golden).map(|version| translation.apply(&version));
    golden["status"] == live["status"] && expected.is_some() && expected == version(live)
}

fn admin() -> User {
    let mut admin = User::new("admin", ["system:masters", "system:authenticated"]);
    admin.uid = "admin-uid".to_owned();
    admin
}

fn python_json(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let entries: Vec<String> = fields
                .iter()
                .map(|(key, item)| format!("{}: {}", json!(key), python_json(item)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(python_json).collect();
            format!("[{}]", items.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// The server's response to a recorded request, once its controllers have caught up with the
/// recorded ones.
async fn replay(
    server: &Server,
    golden: &Value,
    translation: &Translation,
    recording: &Recording,
) -> Value {
    let ask = || exchange(server, golden, translation, recording.spaces);
    let mut live = ask().await;
    // The recorder was faster than the controllers, except where its reads show their results.
    let reads = matches!(golden["method"].as_str(), Some("GET" | "WATCH"));
    if reads && !is_same_state(golden, &live, translation) {
        server.settle().await;
        live = ask().await;
    }
    for _ in 0..WAITS_MAX {
        if is_awaited(golden, &live) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        server.settle().await;
        live = ask().await;
    }
    live
}

async fn measure(recording: &Recording) -> Parity {
    let server = Server::builder()
        .clock(ShortSleeps)
        .rbac(true)
        .nodes(recording.nodes)
        .token("admintoken", admin())
        .token("alice", User::new("alice", ["system:authenticated"]))
        .build();
    webhooks::serve(&server);
    let mut translation = Translation::default();
    let (mut judge, mut subject) = (Normaliser::default(), Normaliser::default());
    let mut pairing = Pairing::default();
    let mut parity = Parity::default();
    for (index, golden) in recorded(recording).iter().enumerate() {
        let live = replay(&server, golden, &translation, recording).await;
        translation.learn(golden, &live);
        if golden["path"] == "/api/v1/namespaces" {
            server.settle().await;
        }
        // A line without a response only prepares the server for the next ones.
        if golden["response"].is_null() && golden["events"].is_null() {
            continue;
        }
        let differences =
            pairing.differences(&essence(golden, &mut judge), &essence(&live, &mut subject));
        parity.count(index, golden, &live, &differences);
    }
    parity
}

async fn check(recording: &Recording) {
    let parity = measure(recording).await;
    if let Ok(folder) = std::env::var("GOLDENS_REPORT") {
        let file = std::path::Path::new(&folder).join(recording.name);
        std::fs::write(file, &parity.report).unwrap();
    }
    let numbers = [parity.decisive, parity.bodies_but_wording, parity.bodies];
    println!(
        "{} exchanges: {:.1} % of statuses, reasons and causes; {:.1} % of bodies ({:.1} % but \
         for wording): {numbers:?}",
        parity.exchanges,
        percent(numbers[0], parity.exchanges),
        percent(numbers[2], parity.exchanges),
        percent(numbers[1], parity.exchanges),
    );
    for (number, line) in numbers.iter().zip(recording.ratchet.lines()) {
        let (name, least) = line.split_once(' ').unwrap();
        let least: usize = least.parse().unwrap();
        assert!(*number >= least, "{name} fell from {least} to {number}");
    }
}

#[tokio::test]
async fn recorded_answers_are_given_again() {
    check(&BY_HAND).await;
}

#[tokio::test]
async fn answers_to_scripts_are_given_again() {
    check(&BY_SCRIPTS).await;
}
