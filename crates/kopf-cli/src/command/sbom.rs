//! `kopf sbom`: everything that is compiled into the operator of this project, as CycloneDX.

use anyhow::Context as _;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use tokio::process::Command;

use super::project::cargo;
use crate::failure::Failure;

/// The arguments of `kopf sbom`.
#[derive(Args)]
pub(super) struct Arguments {
    /// The Cargo.toml of the operator
    #[arg(long, value_name = "FILE", default_value = "Cargo.toml")]
    manifest_path: PathBuf,
}

/// Prints the list as JSON.
pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut command: Command = cargo();
    command.args(["metadata", "--format-version=1", "--manifest-path"]);
    let output = command.arg(&arguments.manifest_path).output().await;
    let output = output.context("could not run cargo")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let path = arguments.manifest_path.display();
        let error = anyhow::anyhow!(text).context(format!("cargo cannot read `{path}`"));
        return Err(Failure::usage(error).hint("go to the folder of an operator"));
    }
    let metadata = serde_json::from_slice(&output.stdout).context("could not read the metadata")?;
    println!("{:#}", document(&metadata));
    Ok(())
}

/// The document for the output of `cargo metadata`: the root and its runtime dependencies.
fn document(metadata: &Value) -> Value {
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let nodes = metadata["resolve"]["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let root = &metadata["resolve"]["root"];
    let used = used(nodes, root);
    let find = |id: &Value| packages.iter().find(|package| package["id"] == *id);
    let components: Vec<Value> =
        used.iter().filter(|id| *id != root).filter_map(find).map(component).collect();
    let dependencies: Vec<Value> = nodes
        .iter()
        .filter(|node| used.contains(&node["id"]))
        .map(|node| json!({"ref": node["id"], "dependsOn": run_time(node)}))
        .collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": find(root).map(component)},
        "components": components,
        "dependencies": dependencies,
    })
}

/// The packages that the root depends on, without build and test dependencies.
fn used(nodes: &[Value], root: &Value) -> Vec<Value> {
    let mut used = vec![root.clone()];
    let mut next = 0;
    while let Some(id) = used.get(next).cloned() {
        next += 1;
        let node = nodes.iter().find(|node| node["id"] == id);
        for id in node.map(run_time).unwrap_or_default() {
            if !used.contains(&id) {
                used.push(id);
            }
        }
    }
    used
}

fn run_time(node: &Value) -> Vec<Value> {
    let is_needed = |dependency: &&Value| {
        let kinds = dependency["dep_kinds"].as_array().map(Vec::as_slice).unwrap_or_default();
        kinds.iter().any(|kind| kind["kind"].is_null())
    };
    let dependencies = node["deps"].as_array().map(Vec::as_slice).unwrap_or_default();
    dependencies.iter().filter(is_needed).map(|dependency| dependency["pkg"].clone()).collect()
}

fn component(package: &Value) -> Value {
    let text = |field: &str| package[field].as_str().unwrap_or_default();
    let (name, version) = (text("name"), text("version"));
    let licence =
        package["license"].as_str().map(|it| json!([{"expression": it.replace('/', " OR ")}]));
    json!({
        "type": if package["source"].is_null() { "application" } else { "library" },
        "bom-ref": package["id"], "name": name, "version": version,
        "purl": format!("pkg:cargo/{name}@{version}"),
        "licenses": licence.unwrap_or_else(|| json!([])),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::document;

    #[test]
    fn what_only_tests_and_builds_need_is_left_out() {
        let package = |id: &str| json!({"id": id, "name": id, "version": "1.0.0", "license": "MIT/Apache-2.0"});
        let needs = |id: &str, kind| json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("app"), package("lib"), package("tool"), package("deep")],
            "resolve": {"root": "app", "nodes": [
                {"id": "app", "deps": [needs("lib", json!(null)), needs("tool", json!("dev"))]},
                {"id": "lib", "deps": [needs("deep", json!(null)), needs("tool", json!("build"))]},
                {"id": "deep", "deps": []}, {"id": "tool", "deps": []},
            ]},
        });
        let document = document(&metadata);
        let names: Vec<_> = document["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].clone())
            .collect();
        assert_eq!(names, ["lib", "deep"]);
        assert_eq!(document["metadata"]["component"]["name"], "app");
        assert_eq!(document["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(document["dependencies"][0]["dependsOn"], json!(["lib"]));
    }
}
