//! Alert rules and the queries of dashboards, checked by promtool.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{EXAMPLES, generate, output, tool};

/// Returns `None` if promtool is missing.
pub(super) fn check() -> Result<Option<()>> {
    let Some(promtool) = tool("promtool") else { return Ok(None) };
    for example in EXAMPLES {
        let folder = generate(example, "kubectl", &["--extras"])?;
        let rules = document(&folder.join("alerts.yaml"))?["spec"].take();
        ensure!(rules["groups"][0]["rules"].is_array(), "no rules: {rules}");
        let said = judge(&promtool, &folder.join("rules.json"), &rules)?;
        println!("── charts: promtool about the rules of {example}: {}", summary(&said));
        let map = document(&folder.join("dashboard.yaml"))?;
        let texts = map["data"].as_object().context("the dashboard is no ConfigMap")?;
        let text = texts.values().next().and_then(Value::as_str).context("no dashboard")?;
        let dashboard: Value = serde_json::from_str(text)?;
        let said = judge(&promtool, &folder.join("queries.json"), &recorded(&dashboard))?;
        println!("── charts: promtool about the dashboard of {example}: {}", summary(&said));
    }
    Ok(Some(()))
}

/// The first document of a file.
fn document(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("could not read `{}`", path.display()))?;
    let first = serde_norway::Deserializer::from_str(&text).next().context("an empty file")?;
    Ok(Value::deserialize(first)?)
}

/// The queries of a dashboard as recording rules, with values instead of Grafana's variables.
fn recorded(dashboard: &Value) -> Value {
    let panels = dashboard["panels"].as_array().map(Vec::as_slice).unwrap_or_default();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let query = |target: &Value| {
        let text = target["expr"].as_str().unwrap_or_default();
        text.replace("$__rate_interval", "5m").replace("$job", "demo")
    };
    let rule = |(index, target)| json!({"record": format!("query_{index}"), "expr": query(target)});
    let rules: Vec<Value> = targets.enumerate().map(rule).collect();
    json!({"groups": [{"name": "dashboard", "rules": rules}]})
}

fn judge(promtool: &Path, file: &Path, rules: &Value) -> Result<String> {
    // JSON is YAML.
    std::fs::write(file, rules.to_string())?;
    let mut command = Command::new(promtool);
    command.args(["check", "rules"]).arg(file);
    output(command)
}

fn summary(said: &str) -> String {
    said.lines().find(|line| line.contains("rules found")).unwrap_or(said).trim().to_owned()
}
