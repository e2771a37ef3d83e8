//! Runs a script on one API server and records the exchanges.
//!
//! Responsible for the namespace of a run, saved variables and open watches. Responses are passed
//! unchanged to `compare` or to the recorder; nothing is judged here.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use http_body_util::BodyExt;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::script::{Content, Script, Step, Variables, fill};
use crate::http::{Client, Stream};
use crate::kubeconfig::Endpoint;

const WAIT_TIMEOUT: Duration = Duration::from_secs(20);
const WAIT_INTERVAL: Duration = Duration::from_millis(100);
/// A watch that does not end by itself is cut after this time.
const WATCH_TIMEOUT: Duration = Duration::from_secs(15);

/// One request and its response, in the format of the goldens.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Exchange {
    pub(crate) section: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) warning: Option<String>,
    pub(crate) response: Value,
    /// The events of a watch, whose `response` is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<Vec<Value>>,
}

pub(crate) struct Runner {
    client: Client,
    variables: Variables,
    watches: HashMap<String, JoinHandle<Result<Exchange>>>,
}

impl Runner {
    /// Creates a runner with its own namespace.
    pub(crate) async fn start(endpoint: Endpoint, namespace: &str) -> Result<Self> {
        let variables = Variables::from([("ns".to_owned(), namespace.to_owned())]);
        let mut runner =
            Self { client: Client::new(endpoint)?, variables, watches: HashMap::new() };
        let create = Step::new("POST", "/api/v1/namespaces")
            .with_body(json!({"metadata": {"name": "${ns}"}}));
        let answer = runner.client.send(&create.request(&runner.variables)).await?;
        if answer.status != 201 {
            bail!("could not create namespace {namespace}: {:?}", answer.body);
        }
        runner.wait_for_defaults().await?;
        Ok(runner)
    }

    /// Waits until controllers have filled a new namespace, so that scripts do not race with them.
    /// If the server fills nothing, that is not an error but a difference.
    async fn wait_for_defaults(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(5);
        for name in ["serviceaccounts/default", "configmaps/kube-root-ca.crt"] {
            let step = Step::new("GET", format!("/api/v1/namespaces/${{ns}}/{name}"));
            while Instant::now() < deadline {
                if self.client.send(&step.request(&self.variables)).await?.status == 200 {
                    break;
                }
                tokio::time::sleep(WAIT_INTERVAL).await;
            }
        }
        Ok(())
    }

    /// Runs all steps; a transport failure becomes the response of its step.
    pub(crate) async fn run(&mut self, script: &Script) -> Vec<Exchange> {
        let mut exchanges = Vec::with_capacity(script.steps.len());
        for step in &script.steps {
            let mut exchange = match self.step(step).await {
                Ok(exchange) => exchange,
                Err(error) => Exchange {
                    response: Value::from(format!("no answer: {error:#}")),
                    ..self.outline(step)
                },
            };
            exchange.section.clone_from(&script.name);
            self.save(step, &exchange);
            exchanges.push(exchange);
        }
        exchanges
    }

    /// Deletes the namespace and the custom resources of its group.
    pub(crate) async fn finish(mut self, script: &Script) -> Result<()> {
        for watch in self.watches.values() {
            watch.abort();
        }
        // An object with a finalizer would keep its namespace forever.
        for path in script.objects() {
            let release = json!({"metadata": {"finalizers": null}});
            let step = Step::patch(Content::Merge, path, release);
            self.client.send(&step.request(&self.variables)).await?;
        }
        let list = Step::new("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions");
        let answer = self.client.send(&list.request(&self.variables)).await?;
        let list: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let group = fill("${ns}.kopf.dev", &self.variables);
        let mut doomed = vec!["/api/v1/namespaces/${ns}".to_owned()];
        for item in list["items"].as_array().into_iter().flatten() {
            if item["spec"]["group"] == group.as_str() {
                let name = item["metadata"]["name"].as_str().unwrap_or_default();
                doomed.push(format!(
                    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
                ));
            }
        }
        for path in doomed {
            self.client.send(&Step::new("DELETE", path).request(&self.variables)).await?;
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step) -> Result<Exchange> {
        match step.method.as_str() {
            "WATCH" => self.watch(step).await,
            "COLLECT" => self.collect(step).await,
            _ => self.request(step).await,
        }
    }

    async fn request(&mut self, step: &Step) -> Result<Exchange> {
        let request = step.request(&self.variables);
        let deadline = Instant::now() + WAIT_TIMEOUT;
        loop {
            let answer = self.client.send(&request).await?;
            let text = String::from_utf8_lossy(&answer.body);
            let is_met = step.wait.as_ref().is_none_or(|wait| wait.is_met(answer.status, &text));
            if is_met || Instant::now() > deadline {
                return Ok(Exchange {
                    status: answer.status,
                    content_type: answer.content_type,
                    warning: (!answer.warnings.is_empty()).then(|| answer.warnings.join(", ")),
                    response: parse(&answer.body),
                    ..self.outline(step)
                });
            }
            tokio::time::sleep(WAIT_INTERVAL).await;
        }
    }

    async fn watch(&mut self, step: &Step) -> Result<Exchange> {
        let stream = self.client.stream(&step.request(&self.variables)).await?;
        let mut exchange = Exchange {
            status: stream.status,
            content_type: stream.content_type.clone(),
            ..self.outline(step)
        };
        let Some(name) = &step.open else {
            exchange.events = Some(read_events(stream, step.until.clone()).await?);
            return Ok(exchange);
        };
        let (mut collected, until) = (exchange.clone(), step.until.clone());
        let task = tokio::spawn(async move {
            collected.events = Some(read_events(stream, until).await?);
            Ok(collected)
        });
        self.watches.insert(name.clone(), task);
        Ok(exchange)
    }

    async fn collect(&mut self, step: &Step) -> Result<Exchange> {
        let name = step.open.as_deref().context("COLLECT needs `open`")?;
        let task = self.watches.remove(name).with_context(|| format!("no watch `{name}`"))?;
        Ok(Exchange { method: "COLLECT".to_owned(), ..task.await?? })
    }

    fn outline(&self, step: &Step) -> Exchange {
        let body = fill(&step.body.to_string(), &self.variables);
        Exchange {
            method: step.method.clone(),
            path: fill(&step.path, &self.variables),
            headers: step.all_headers(),
            body: serde_json::from_str(&body).unwrap_or_else(|_| step.body.clone()),
            ..Exchange::default()
        }
    }

    fn save(&mut self, step: &Step, exchange: &Exchange) {
        for (name, pointer) in &step.save {
            let value = match exchange.response.pointer(pointer) {
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => continue,
            };
            self.variables.insert(name.clone(), value);
        }
    }
}

/// Reads a watch to its end, or up to the event of the object named `until`.
pub(crate) async fn read_events(stream: Stream, until: Option<String>) -> Result<Vec<Value>> {
    let mut body = stream.body;
    let mut text = Vec::new();
    let reading = async {
        while let Some(frame) = body.frame().await {
            text.extend_from_slice(&frame?.into_data().unwrap_or_default());
            if until.as_ref().is_some_and(|name| has_event_of(&text, name)) {
                break;
            }
        }
        anyhow::Ok(())
    };
    // A watch that takes too long is cut: its events show why.
    if let Ok(outcome) = tokio::time::timeout(WATCH_TIMEOUT, reading).await {
        outcome?;
    }
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(parse).collect())
}

fn has_event_of(text: &[u8], name: &str) -> bool {
    let complete = text.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
    let mut lines = text[..complete].split(|byte| *byte == b'\n');
    lines.any(|line| parse(line)["object"]["metadata"]["name"] == name)
}

/// Parses JSON; returns other content as a string.
pub(crate) fn parse(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or_else(|_| Value::from(String::from_utf8_lossy(body)))
}
