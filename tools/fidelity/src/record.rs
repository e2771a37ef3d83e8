//! `cargo xtask record`: records new goldens from a real API server.
//!
//! Defines the file format: one exchange per line, with secrets scrubbed. The server must be new,
//! since namespaces are named after their scripts. Compares nothing.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};

use crate::differential::random;
use crate::differential::runner::{Exchange, Runner};
use crate::differential::script::{self, Script, Step};
use crate::kubeconfig::Endpoint;

const RANDOM_STEPS: usize = 40;

/// The arguments of `cargo xtask record`.
#[derive(Args)]
pub struct Arguments {
    /// Kubeconfig of the server to record
    /// [default: the control plane of `cargo xtask kube up`].
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// A script, or a folder of scripts.
    #[arg(long)]
    scripts: Option<PathBuf>,
    /// The file to write.
    #[arg(long)]
    output: PathBuf,
    /// How many random sequences to record after the scripts.
    #[arg(long, default_value_t = 0)]
    random: u64,
    /// First seed of the random sequences.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Records the responses of a server; `default` finds its kubeconfig if none is given.
///
/// # Errors
/// Fails if the server is unreachable or the file cannot be written.
pub fn run(arguments: &Arguments, default: impl FnOnce() -> Result<PathBuf>) -> Result<()> {
    let kubeconfig = match &arguments.kubeconfig {
        Some(path) => path.clone(),
        None => default()?,
    };
    let endpoint = Endpoint::from_file(&kubeconfig)?;
    let folder = arguments.scripts.clone().unwrap_or_else(crate::differential::shipped_scripts);
    let mut scripts = script::read_all(&folder)?;
    let seeds = arguments.seed..arguments.seed + arguments.random;
    scripts.extend(seeds.map(|seed| random::script(seed, RANDOM_STEPS)));
    let runtime = crate::http::runtime()?;
    let file = File::create(&arguments.output)
        .with_context(|| format!("could not create `{}`", arguments.output.display()))?;
    let mut output = BufWriter::new(file);
    let mut count = 0;
    for script in &scripts {
        let lines = runtime.block_on(record(&endpoint, script))?;
        for line in &lines {
            writeln!(output, "{line}")?;
        }
        count += lines.len();
    }
    output.flush()?;
    println!("{count} exchanges recorded");
    Ok(())
}

async fn record(endpoint: &Endpoint, script: &Script) -> Result<Vec<Value>> {
    let namespace = format!("rec-{}", script.name);
    let mut runner = Runner::start(endpoint.clone(), &namespace)
        .await
        .with_context(|| format!("script {}", script.name))?;
    let exchanges = runner.run(script).await;
    runner.finish(script).await?;
    let setup = json!({
        "section": script.name, "method": "POST", "path": "/api/v1/namespaces",
        "headers": {"Accept": "application/json", "Content-Type": "application/json"},
        "body": {"metadata": {"name": namespace}}, "status": 201,
        "contentType": "application/json", "warning": null, "response": null,
    });
    let steps = script.steps.iter().zip(&exchanges);
    let lines = steps.filter(|(step, _)| !is_opening(step)).map(|(step, exchange)| {
        let mut line = line(exchange);
        if let Some(wait) = &step.wait {
            line["wait"] = json!(wait);
        }
        scrub(&line)
    });
    Ok(std::iter::once(setup).chain(lines).collect())
}

/// The start of a background watch has no events; its end has them.
fn is_opening(step: &Step) -> bool {
    step.method == "WATCH" && step.open.is_some()
}

/// A watch has events and no response; other requests the other way round.
fn line(exchange: &Exchange) -> Value {
    let mut line = json!(exchange);
    if exchange.method == "COLLECT" {
        // The same events can be read from history without waiting.
        line["method"] = json!("WATCH");
        line["path"] = json!(exchange.path.replace("timeoutSeconds=10", "timeoutSeconds=1"));
    }
    if let Some(fields) = line.as_object_mut().filter(|_| exchange.events.is_some()) {
        for field in ["body", "response", "contentType", "warning"] {
            fields.remove(field);
        }
    }
    line
}

fn scrub(value: &Value) -> Value {
    match value {
        Value::String(text) if text.contains("-----BEGIN ") => Value::from("<pem>"),
        Value::String(text) if text.starts_with("LS0tLS1") => Value::from("<pem>"),
        Value::String(text) if text.starts_with("eyJ") && text.matches('.').count() == 2 => {
            Value::from("<jwt>")
        }
        Value::Array(items) => items.iter().map(scrub).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(field, value)| (field.clone(), scrub(value))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_reach_the_goldens() {
        let value = json!({"token": "eyJh.b.c", "ca": ["-----BEGIN CERTIFICATE-----"], "n": 1});
        assert_eq!(scrub(&value), json!({"token": "<jwt>", "ca": ["<pem>"], "n": 1}));
    }

    #[test]
    fn a_watch_line_has_events_instead_of_a_response() {
        let watch = Exchange { events: Some(vec![]), ..Exchange::default() };
        assert!(line(&watch).get("response").is_none());
        assert!(line(&Exchange::default()).get("events").is_none());
    }
}
