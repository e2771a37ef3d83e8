//! Faults and logged requests of worlds, as Python writes and reads them: plain data.

use std::time::Duration;

use kopf_testing::fault::{self, On};
use kopf_testing::{Fault, LoggedRequest, Verb};
use serde::Deserialize;
use serde_json::{Value, json};

const VERBS: [Verb; 8] = [
    Verb::Get,
    Verb::List,
    Verb::Watch,
    Verb::Create,
    Verb::Update,
    Verb::Patch,
    Verb::Delete,
    Verb::DeleteCollection,
];

/// Which requests of operators get into which trouble.
#[derive(Deserialize)]
pub(crate) struct FaultDeclaration {
    resource: Option<String>,
    #[serde(default)]
    verbs: Vec<String>,
    name: Option<String>,
    namespace: Option<String>,
    subresource: Option<String>,
    trouble: Trouble,
    /// Lets so many requests pass.
    after: Option<usize>,
    /// Stops after so many.
    times: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Trouble {
    Status(u16),
    TooMany(f64),
    Slow(f64),
    Expired,
    CutAfter(usize),
    FrozenAfter(usize),
    Doubled,
    Delayed(f64),
    Reordered,
}

impl FaultDeclaration {
    /// The fault; a text if it is not understood.
    pub(crate) fn build(self) -> Result<Fault, String> {
        let mut requests = match &self.resource {
            Some(resource) => fault::on(resource),
            None => fault::anywhere(),
        };
        for verb in &self.verbs {
            let known = VERBS.into_iter().find(|known| known.as_str() == verb);
            requests = requests.verb(known.ok_or_else(|| format!("unknown verb: {verb}"))?);
        }
        if let Some(name) = &self.name {
            requests = requests.named(name);
        }
        if let Some(namespace) = &self.namespace {
            requests = requests.in_namespace(namespace);
        }
        if let Some(subresource) = &self.subresource {
            requests = requests.through(subresource);
        }
        let mut fault = self.trouble.befall(requests)?;
        if let Some(count) = self.after {
            fault = fault.after(count);
        }
        if let Some(count) = self.times {
            fault = fault.times(count);
        }
        Ok(fault)
    }
}

impl Trouble {
    fn befall(self, requests: On) -> Result<Fault, String> {
        let time = |seconds| Duration::try_from_secs_f64(seconds).map_err(|it| it.to_string());
        Ok(match self {
            Self::Status(code) => requests.status(code),
            Self::TooMany(seconds) => requests.too_many(time(seconds)?),
            Self::Slow(seconds) => requests.slow(time(seconds)?),
            Self::Expired => requests.expired(),
            Self::CutAfter(events) => requests.cut_after(events),
            Self::FrozenAfter(events) => requests.frozen_after(events),
            Self::Doubled => requests.doubled(),
            Self::Delayed(seconds) => requests.delayed(time(seconds)?),
            Self::Reordered => requests.reordered(),
        })
    }
}

/// A request by the names of Python.
pub(crate) fn logged(request: &LoggedRequest) -> Value {
    let info = &request.info;
    json!({
        "number": request.number,
        "verb": info.verb.as_str(),
        "group": info.group,
        "version": info.version,
        "resource": info.resource,
        "subresource": info.subresource,
        "namespace": info.namespace,
        "name": info.name,
        "path": request.path,
        "content_type": request.content_type,
        "body": String::from_utf8_lossy(&request.body),
        "status": request.status,
    })
}
