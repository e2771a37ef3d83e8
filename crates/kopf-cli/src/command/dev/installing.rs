//! Installs the operator's definitions, and once the user's manifests, in the cluster.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use kopf_model::Selector;
use kopf_model::resource::SelectorName;
use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;

use crate::definitions::{self, Wanted};
use crate::failure::Failure;
use crate::load::Document;

/// A program that does not describe itself within this time is stuck.
const PATIENCE: Duration = Duration::from_secs(20);

/// The objects to install before each start.
pub(super) struct Installing {
    client: kube::Client,
    /// Loaded once, after the first definitions.
    documents: Vec<Document>,
}

/// The output of an operator's `describe --json`.
#[derive(Debug, Deserialize)]
pub(super) struct Description {
    #[serde(default)]
    definitions: Vec<Value>,
    handlers: Vec<HandlerDescription>,
}

#[derive(Debug, Deserialize)]
struct HandlerDescription {
    kind: String,
    #[serde(default)]
    resource: Option<ResourceDescription>,
    /// The target version of a conversion.
    #[serde(default)]
    to: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ResourceDescription {
    group: Option<String>,
    version: Option<String>,
    plural: Option<String>,
}

impl Description {
    /// Runs `describe` of a program.
    pub(super) async fn of(executable: &Path) -> Result<Self> {
        let mut command = Command::new(executable);
        command.args(["describe", "--json"]).kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, command.output()).await;
        let output = output.map_err(|_| anyhow!("`describe --json` did not finish in time"))??;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`describe --json` failed: {}", text.trim());
        serde_json::from_slice(&output.stdout)
            .context("`describe --json` printed something else; does `main` call `Operator::main`?")
    }

    /// Whether there are handlers that need webhooks.
    pub(super) fn has_webhooks(&self) -> bool {
        let is_asked = |kind: &str| ["validate", "mutate", "convert"].contains(&kind);
        self.handlers.iter().any(|it| is_asked(&it.kind))
    }

    fn wanted(&self) -> Wanted {
        let selectors = self.handlers.iter().flat_map(HandlerDescription::selectors);
        Wanted { definitions: self.definitions.clone(), selectors: selectors.collect() }
    }
}

impl HandlerDescription {
    fn selectors(&self) -> Vec<Selector> {
        let selector = self.resource.as_ref().and_then(|resource| {
            Some(Selector {
                group: resource.group.clone(),
                version: resource.version.clone(),
                name: SelectorName::Plural(resource.plural.clone()?),
            })
        });
        let in_version = |version: &String| Selector {
            version: Some(version.clone()),
            ..selector.clone().unwrap_or_default()
        };
        let target = self.to.as_ref().filter(|_| selector.is_some()).map(in_version);
        selector.into_iter().chain(target).collect()
    }
}

impl Installing {
    pub(super) fn new(client: kube::Client, documents: Vec<Document>) -> Self {
        Self { client, documents }
    }

    /// Updates the cluster for the newest program.
    pub(super) async fn install(&mut self, description: &Description) -> Result<(), Failure> {
        let documents = self.documents.clone();
        definitions::prepare(&self.client, description.wanted(), documents).await?;
        self.documents.clear();
        Ok(())
    }
}
