//! `cargo xtask rights`: runs every example on a real server, with exactly its generated rights.
//!
//! For each example: applies the output of `PROGRAM manifests`, runs the program with a token of
//! its own ServiceAccount, runs `examples/NAME/demo.sh` as the administrator, and looks for
//! rejected requests in the log. Needs a control plane (`cargo xtask kube up`) and kubectl. `pods`
//! simulates Pods.

mod pods;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use regex::Regex;
use serde_json::{Value, json};

use crate::cluster::target;
use crate::demos::{self, Example};
use crate::kube;
use crate::kubeconfig::{Endpoint, render};

/// The examples that need an embedded server, and why.
const LEFT_OUT: [(&str, &str); 2] = [
    ("08-embedding", "has no command line, so no manifests"),
    ("19-peering", "its demonstration runs two operators with other rights"),
];
/// How long the token of an operator is valid.
const TOKEN_DURATION: &str = "2h";
/// How long an operator may take to get ready before its demonstration starts.
const START: Duration = Duration::from_secs(3);
/// How long the garbage collector takes to notice a new definition; without it, children of its
/// objects are not deleted.
const COLLECTOR: Duration = Duration::from_secs(40);
/// The objects that a demonstration may leave in the default namespace, besides its custom
/// resources.
const LEFTOVERS: &str = "pods,deployments,statefulsets,daemonsets,services,configmaps,\
                         persistentvolumeclaims,roles,rolebindings";

/// The arguments of `cargo xtask rights`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The examples, such as `load-test`; all that have a `demo.sh` if none is given.
    names: Vec<String>,
    /// The control plane, as in `cargo xtask kube up --name NAME`.
    #[arg(long, default_value = "default")]
    name: String,
    /// Write the results into this file, as a table.
    #[arg(long)]
    report: Option<PathBuf>,
}

/// Runs the examples one after the other; fails if one of them fails.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let is_left_out = |name: &String| LEFT_OUT.iter().any(|(left_out, _)| left_out == name);
    let names: Vec<String> = match arguments.names.as_slice() {
        [] => demos::all()?.into_iter().filter(|name| !is_left_out(name)).collect(),
        names => names.to_vec(),
    };
    let admin = kube::kubeconfig_of(&arguments.name)?;
    demos::build(&names)?;
    let _player = pods::Player::start(&admin)?;
    let mut rows = Vec::new();
    for name in &names {
        let begun = Instant::now();
        let verdict = Trial::new(name, &admin)?.run();
        let took = begun.elapsed();
        match &verdict {
            Ok(_) => println!("── rights of {name}: enough ({took:.0?})"),
            Err(error) => println!("── rights of {name}: FAILED ({took:.0?})\n{error:#}"),
        }
        rows.push((name.clone(), verdict));
    }
    if let Some(path) = &arguments.report {
        fs::write(path, report(&rows, &version(&admin)?))?;
    }
    let failed: Vec<&str> =
        rows.iter().filter(|(_, verdict)| verdict.is_err()).map(|(name, _)| &**name).collect();
    ensure!(failed.is_empty(), "these examples failed: {}", failed.join(", "));
    Ok(())
}

/// One example on the server.
struct Trial<'a> {
    name: &'a str,
    admin: &'a Path,
    folder: PathBuf,
    program: PathBuf,
}

impl<'a> Trial<'a> {
    fn new(name: &'a str, admin: &'a Path) -> Result<Self> {
        let folder = target().join("rights").join(format!("{}-{name}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let program = target().join("debug").join(format!("example-{name}"));
        Ok(Self { name, admin, folder, program })
    }

    /// Returns the rules that were sufficient.
    fn run(&self) -> Result<Vec<Value>> {
        let deploy = self.folder.join("deploy");
        let mut manifests = Command::new(&self.program);
        manifests.args(["manifests", "--image", "none", "--output"]).arg(&deploy);
        succeed(manifests)?;
        let documents = documents(&deploy.join("rbac.yaml"))?;
        let definitions = self.definitions(&deploy, &documents)?;
        self.apply(&definitions)?;
        self.apply(&documents)?;
        if demos::script(self.name).contains("--for=delete") {
            std::thread::sleep(COLLECTOR);
        }
        let outcome = self.demonstrate(&deploy, &documents);
        let cleaned = self.clean(&definitions, &documents);
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let refusals = refusals(&log);
        fs::remove_dir_all(&self.folder)?;
        outcome.with_context(|| format!("the operator said last:\n{}\n", tail(&log)))?;
        ensure!(refusals.is_empty(), "the operator was refused:\n{}", refusals.join("\n"));
        cleaned?;
        let rules = documents.iter().filter(|it| it["kind"] == "ClusterRole");
        Ok(rules.filter_map(|role| role["rules"].as_array()).flatten().cloned().collect())
    }

    fn demonstrate(&self, deploy: &Path, documents: &[Value]) -> Result<()> {
        let kubeconfig = self.kubeconfig(documents)?;
        let script = demos::script(self.name);
        let variables = demos::variables(&script)?;
        let log = fs::File::create(self.folder.join("log"))?;
        let mut command = Command::new(&self.program);
        command.args(["run", "--standalone", "--all-namespaces"]);
        if fs::read_to_string(deploy.join("deployment.yaml"))?.contains("--webhook=") {
            let port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
            command.args(["--webhook", &format!("127.0.0.1:{port}")]);
        }
        command.env("KUBECONFIG", &kubeconfig);
        let mut example =
            Example::launch(command, &self.program, &self.folder, self.admin, log, &variables)?;
        std::thread::sleep(START);
        let performed = demos::perform(self.name, &example, &variables);
        // Objects with finalizers can only be deleted while their operator is running.
        let removed = self.remove_objects(&self.plurals(deploy, documents)?);
        performed.and(removed).and(example.stop())
    }

    /// A kubeconfig with a token of the operator's own account.
    fn kubeconfig(&self, documents: &[Value]) -> Result<PathBuf> {
        let account = documents.iter().find(|it| it["kind"] == "ServiceAccount");
        let account = account.and_then(|it| it["metadata"]["name"].as_str());
        let account = account.context("the manifests have no ServiceAccount")?;
        let duration = format!("--duration={TOKEN_DURATION}");
        let token = self.kubectl(&["create", "token", account, &duration])?;
        let endpoint = Endpoint::from_file(self.admin)?;
        let ca = self.folder.join("ca.crt");
        fs::write(&ca, endpoint.ca.context("the server has no certificate")?)?;
        let path = self.folder.join("kubeconfig");
        fs::write(&path, render(&endpoint.server, &ca.to_string_lossy(), token.trim()))?;
        Ok(path)
    }

    /// The generated definitions, and simple ones for resources without a type.
    fn definitions(&self, deploy: &Path, rights: &[Value]) -> Result<Vec<Value>> {
        let generated = deploy.join("crds.yaml");
        let mut all = if generated.exists() { documents(&generated)? } else { Vec::new() };
        let kinds = kinds(&demos::script(self.name))?;
        for (group, plural) in custom(rights) {
            let name = format!("{plural}.{group}");
            let is_defined = all.iter().any(|it| it["metadata"]["name"] == name.as_str());
            let kind = kinds.iter().find(|kind| is_plural(&plural, kind));
            if let (Some(kind), false) = (kind, is_defined) {
                all.push(definition(&group, &plural, kind));
            }
        }
        Ok(all)
    }

    fn plurals(&self, deploy: &Path, rights: &[Value]) -> Result<Vec<String>> {
        let definitions = self.definitions(deploy, rights)?;
        let names = definitions.iter().filter_map(|it| it["metadata"]["name"].as_str());
        Ok(names.map(str::to_owned).collect())
    }

    fn apply(&self, documents: &[Value]) -> Result<()> {
        if documents.is_empty() {
            return Ok(());
        }
        let path = self.folder.join("applied.json");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
        fs::write(&path, list.to_string())?;
        self.kubectl(&["apply", "--server-side", "-f", &path.to_string_lossy()])?;
        for definition in documents.iter().filter(|it| it["kind"] == "CustomResourceDefinition") {
            let name = definition["metadata"]["name"].as_str().unwrap_or_default();
            let name = format!("crd/{name}");
            self.kubectl(&["wait", &name, "--for=condition=Established", "--timeout=30s"])?;
        }
        Ok(())
    }

    fn remove_objects(&self, plurals: &[String]) -> Result<()> {
        for plural in plurals {
            self.kubectl(&["delete", plural, "--all", "-A", "--timeout=60s"])?;
        }
        Ok(())
    }

    fn clean(&self, definitions: &[Value], rights: &[Value]) -> Result<()> {
        let path = self.folder.join("cleaned.json");
        for documents in [rights, definitions] {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
            fs::write(&path, list.to_string())?;
            let path = path.to_string_lossy();
            self.kubectl(&["delete", "--ignore-not-found", "--timeout=60s", "-f", &path])?;
        }
        // Some belong to the cluster itself.
        let selector = "--field-selector=metadata.name!=kubernetes,metadata.name!=kube-root-ca.crt";
        self.kubectl(&["delete", LEFTOVERS, "--timeout=60s", selector])?;
        let hooks = "validatingwebhookconfigurations,mutatingwebhookconfigurations";
        self.kubectl(&["delete", hooks, "--all"])?;
        Ok(())
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("kubectl");
        command.args(arguments).env("KUBECONFIG", self.admin);
        succeed(command)
    }
}

/// Runs a command to its end; an error contains its output.
fn succeed(mut command: Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command.output().with_context(|| format!("could not start {shown}"))?;
    if !output.status.success() {
        bail!("{shown} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn documents(path: &Path) -> Result<Vec<Value>> {
    use serde::Deserialize as _;
    let text = fs::read_to_string(path)?;
    let documents = serde_norway::Deserializer::from_str(&text);
    documents.map(|document| Ok(Value::deserialize(document)?)).collect()
}

/// The custom resources that the rules name, without subresources.
fn custom(rights: &[Value]) -> Vec<(String, String)> {
    let rules = rights.iter().filter_map(|it| it["rules"].as_array()).flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    rules
        .map(|rule| (text(&rule["apiGroups"][0]), text(&rule["resources"][0])))
        .filter(|(group, plural)| {
            let is_custom = group.contains('.') && !group.ends_with(".k8s.io");
            is_custom && !plural.contains(['/', '*'])
        })
        .collect()
}

/// The kinds that a script and its manifests name.
fn kinds(script: &str) -> Result<Vec<String>> {
    let mut text = script.to_owned();
    for file in Regex::new(r"examples/[\w./-]+\.yaml")?.find_iter(script) {
        text += &fs::read_to_string(crate::steps::root().join(file.as_str())).unwrap_or_default();
    }
    let kind = Regex::new(r#"kind"?: "?(\w+)"#)?;
    Ok(kind.captures_iter(&text).map(|found| found[1].to_owned()).collect())
}

fn is_plural(plural: &str, kind: &str) -> bool {
    let kind = kind.to_lowercase();
    plural == format!("{kind}s")
        || kind.strip_suffix('y').is_some_and(|stem| plural == format!("{stem}ies"))
}

fn definition(group: &str, plural: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}],
        },
    })
}

/// The log lines about rejected requests.
fn refusals(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains(" is forbidden: ")).take(10).collect()
}

fn tail(log: &str) -> String {
    let last: Vec<&str> = log.lines().rev().take(30).collect();
    last.into_iter().rev().collect::<Vec<_>>().join("\n")
}

fn version(admin: &Path) -> Result<String> {
    let mut command = Command::new("kubectl");
    command.args(["version", "-o", "json"]).env("KUBECONFIG", admin);
    let version: Value = serde_json::from_str(&succeed(command)?)?;
    Ok(version["serverVersion"]["gitVersion"].as_str().unwrap_or("unknown").to_owned())
}

fn report(rows: &[(String, Result<Vec<Value>>)], version: &str) -> String {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC");
    let mut text = format!(
        "# Generated rights on a real server\n\n\
         Made by `cargo xtask rights` on {date}, kube-apiserver {version}. Each program runs with a \
         token of the ServiceAccount that its `manifests` command generates, while its `demo.sh` \
         runs as the administrator. A request that is refused fails the example.\n\n\
         | example | result | generated rules |\n|---|---|---|\n"
    );
    for (name, verdict) in rows {
        let row = match verdict {
            Ok(rules) => {
                let rules: Vec<String> = rules.iter().map(shown).collect();
                format!("| {name} | enough | {} |\n", rules.join("<br>"))
            }
            Err(error) => {
                let reason = error.root_cause().to_string();
                let reason = reason.lines().last().unwrap_or_default().replace('|', "\\|");
                format!("| {name} | **failed** | {reason} |\n")
            }
        };
        text += &row;
    }
    text += "\nLeft out:\n";
    for (name, reason) in LEFT_OUT {
        text += &format!("- {name}: {reason}.\n");
    }
    text
}

fn shown(rule: &Value) -> String {
    let list = |key: &str| {
        let texts = rule[key].as_array().cloned().unwrap_or_default();
        texts.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let group = list("apiGroups").join(",");
    let dot = if group.is_empty() { "" } else { "." };
    let names = list("resourceNames").join(",");
    let names = if names.is_empty() { names } else { format!(" {names}") };
    let (verbs, resources) = (list("verbs").join(","), list("resources").join(","));
    format!("`{verbs} {resources}{dot}{group}{names}`")
}
