//! `cargo xtask replay`: replays recorded goldens on a live API server.
//!
//! Turns recorded lines into live requests and compares the responses. The server must be new,
//! since goldens name their namespaces. With the server from which they were recorded, this tests
//! the recording and the normaliser.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::Args;
use serde_json::{Value, json};

use crate::differential::compare::{self, ScriptResult, StepResult};
use crate::differential::first_sight::FirstSight;
use crate::differential::report::{self, Heading, Totals};
use crate::differential::runner;
use crate::differential::script::Wait;
use crate::http::{Client, Request};
use crate::kubeconfig::Endpoint;
use crate::normalise::{Normaliser, Translation};
use crate::pairing::{Difference, Pairing};
use crate::subject::Subject;

/// Recordings were made at a human pace; controllers need a moment.
const PAUSE_AFTER_NAMESPACE: Duration = Duration::from_millis(600);
const SETTLE_TIMEOUT: Duration = Duration::from_secs(3);
const SETTLE_INTERVAL: Duration = Duration::from_millis(100);

/// The arguments of `cargo xtask replay`.
#[derive(Args)]
pub struct Arguments {
    /// The recorded exchanges.
    #[arg(long)]
    goldens: PathBuf,
    /// Kubeconfig of the server to be judged [default: starts `kopf cluster`].
    #[arg(long)]
    subject: Option<PathBuf>,
    /// Where to write the report.
    #[arg(long)]
    report: PathBuf,
}

/// Sends recorded requests to a server and compares the responses.
///
/// # Errors
/// Fails if the server is unreachable or the recording cannot be read.
pub fn run(arguments: &Arguments) -> Result<()> {
    let goldens = read(&arguments.goldens)?;
    let subject = Subject::open(arguments.subject.as_deref())?;
    let steps = crate::http::runtime()?.block_on(replay(subject.endpoint.clone(), &goldens))?;
    let results = by_section(steps);
    let heading = Heading {
        date: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        judge: "recorded goldens".to_owned(),
        subject: "live server".to_owned(),
    };
    let text = report::render(&heading, &results, &FirstSight::default(), None);
    std::fs::write(&arguments.report, text)?;
    let totals = Totals::of(&results);
    println!(
        "{} of {} exchanges equal ({:.1} %), {} more but for wording",
        totals.equal,
        totals.steps,
        totals.percent(),
        totals.text_only
    );
    Ok(())
}

fn read(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("could not read `{}`", path.display()))?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

async fn replay(endpoint: Endpoint, goldens: &[Value]) -> Result<Vec<(String, StepResult)>> {
    let mut client = Client::new(endpoint)?;
    let mut translation = Translation::default();
    let mut sides = Sides::default();
    let mut steps = Vec::new();
    for golden in goldens {
        let request = live_request(golden, &translation);
        let live = settled(&mut client, golden, &request).await;
        translation.learn(golden, &live);
        if request.method == "POST" && request.path == "/api/v1/namespaces" {
            tokio::time::sleep(PAUSE_AFTER_NAMESPACE).await;
        }
        let differences = sides.differences(golden, &live);
        // A line without a response only prepares the server for the next ones.
        if golden["response"].is_null() && golden["events"].is_null() {
            continue;
        }
        let name = format!("{} {}", golden["method"].as_str().unwrap_or_default(), request.path);
        let section = golden["section"].as_str().unwrap_or_default().to_owned();
        steps.push((section, compare::judge(name, differences, &[])));
    }
    Ok(steps)
}

/// The exchanges with the two servers so far.
#[derive(Default)]
struct Sides {
    judge: Normaliser,
    subject: Normaliser,
    pairing: Pairing,
}

impl Sides {
    fn differences(&mut self, golden: &Value, live: &Value) -> Vec<Difference> {
        let judge = essence(golden, &mut self.judge);
        let subject = essence(live, &mut self.subject);
        self.pairing.differences(&judge, &subject)
    }
}

/// Retries while a read has another status: controllers take time.
async fn settled(client: &mut Client, golden: &Value, request: &Request) -> Value {
    let deadline = Instant::now() + SETTLE_TIMEOUT;
    loop {
        let live = send(client, golden, request).await.unwrap_or_else(
            |error| json!({"status": 0, "response": format!("no answer: {error:#}")}),
        );
        let is_settled = match serde_json::from_value::<Wait>(golden["wait"].clone()) {
            Ok(wait) => {
                let status = live["status"].as_u64().and_then(|status| status.try_into().ok());
                wait.is_met(status.unwrap_or_default(), &live["response"].to_string())
            }
            Err(_) => live["status"] == golden["status"] || golden["method"] != "GET",
        };
        if is_settled || Instant::now() > deadline {
            return live;
        }
        tokio::time::sleep(SETTLE_INTERVAL).await;
    }
}

fn live_request(golden: &Value, translation: &Translation) -> Request {
    let method = golden["method"].as_str().unwrap_or_default();
    let path = translation.apply(golden["path"].as_str().unwrap_or_default());
    let body = match &golden["body"] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        body => Some(body.to_string()),
    };
    Request {
        method: if method == "WATCH" { "GET".to_owned() } else { method.to_owned() },
        path: crate::differential::script::watch_path(method, &path),
        headers: live_headers(golden),
        body: body.map(|body| Bytes::from(translation.apply(&body))),
    }
}

/// Tokens are scrubbed from goldens; only the response shows which user it was.
fn live_headers(golden: &Value) -> Vec<(String, String)> {
    let headers = golden["headers"].as_object().into_iter().flatten();
    let mut headers: Vec<(String, String)> = headers
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    let is_named = headers.iter().any(|(name, _)| name.starts_with("Impersonate"));
    let message = golden["response"]["message"].as_str().unwrap_or_default();
    if golden["status"] == 401 {
        headers.push(("Authorization".to_owned(), "Bearer wrong".to_owned()));
    } else if golden["status"] == 403 && message.contains("User \"alice\"") && !is_named {
        headers.push(("Impersonate-User".to_owned(), "alice".to_owned()));
    }
    headers
}

async fn send(client: &mut Client, golden: &Value, request: &Request) -> Result<Value> {
    if golden["method"] == "WATCH" {
        let stream = client.stream(request).await?;
        let status = stream.status;
        let events = runner::read_events(stream, None).await?;
        return Ok(json!({"status": status, "events": events}));
    }
    let answer = client.send(request).await?;
    let warning = (!answer.warnings.is_empty()).then(|| answer.warnings.join(", "));
    Ok(json!({
        "status": answer.status,
        "contentType": answer.content_type,
        "warning": warning,
        "response": runner::parse(&answer.body),
    }))
}

/// The part of a line that is compared.
fn essence(line: &Value, normaliser: &mut Normaliser) -> Value {
    let mut essence = json!({"status": line["status"]});
    if let Some(events) = line["events"].as_array() {
        essence["events"] = normaliser.events(events);
        return essence;
    }
    essence["contentType"] = line["contentType"].clone();
    essence["response"] = normaliser.value(&line["response"]);
    if let Some(warning) = line["warning"].as_str() {
        essence["warning"] = Value::from(normaliser.text(warning));
    }
    essence
}

fn by_section(steps: Vec<(String, StepResult)>) -> Vec<ScriptResult> {
    let mut results: Vec<ScriptResult> = Vec::new();
    for (name, step) in steps {
        match results.iter_mut().find(|result| result.name == name) {
            Some(result) => result.steps.push(step),
            None => results.push(ScriptResult { name, steps: vec![step] }),
        }
    }
    results
}
