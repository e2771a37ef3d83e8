//! `cargo xtask charts`: Helm charts of examples are linted, rendered, installed, upgraded and
//! uninstalled on an embedded cluster, and leave nothing behind.
//!
//! Needs `helm`, in the path or in the cache folder, and kubectl; without them it says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cluster::{Cluster, target};
use crate::demos;
use crate::steps::{cache, command_step};

/// The examples: one with children, one with webhooks.
const EXAMPLES: [&str; 2] = ["registry-mirror", "16-admission"];
/// Everything that is off by default, on.
const EVERYTHING: [&str; 7] = [
    "metrics.enabled=true",
    "metrics.serviceMonitor.enabled=true",
    "metrics.alerts.enabled=true",
    "metrics.dashboard.enabled=true",
    "networkPolicy.enabled=true",
    "podDisruptionBudget.enabled=true",
    "namespaces={team-a,team-b}",
];
/// What a chart may create.
const KINDS: &str = "deployments,services,serviceaccounts,roles,rolebindings,clusterroles,\
                     clusterrolebindings,customresourcedefinitions,networkpolicies,\
                     poddisruptionbudgets,configmaps,secrets";

/// Does it all, or says what is missing.
pub(crate) fn run() -> Result<()> {
    let Some(helm) = helm() else {
        println!("── charts: SKIPPED, there is no `helm` on this machine");
        return Ok(());
    };
    if Command::new("kubectl").arg("--help").output().is_err() {
        println!("── charts: SKIPPED, there is no `kubectl` on this machine");
        return Ok(());
    }
    // The same selection as for demonstrations, so that CI compiles nothing for this.
    demos::build(&demos::all()?)?;
    let cluster = Cluster::start("dev")?;
    for name in EXAMPLES {
        let chart = chart(name)?;
        let tool = Tool { helm: &helm, kubeconfig: &cluster.kubeconfig, chart: &chart };
        tool.check(name)?;
    }
    Ok(())
}

/// The program, wherever it is.
fn helm() -> Option<PathBuf> {
    let cached = cache().ok()?.join("helm/bin/helm");
    let is_there = |path: &Path| Command::new(path).arg("version").output().is_ok();
    [PathBuf::from("helm"), cached].into_iter().find(|path| is_there(path))
}

/// The chart of an example, written anew.
fn chart(example: &str) -> Result<PathBuf> {
    let folder = target().join("charts").join(example);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let mut manifests = Command::new(target().join(format!("debug/example-{example}")));
    manifests.args(["manifests", "--image", "you/demo:1", "--format", "helm", "--output"]);
    manifests.arg(&folder);
    command_step(&format!("charts: {example}"), manifests)?;
    Ok(folder)
}

struct Tool<'a> {
    helm: &'a Path,
    kubeconfig: &'a Path,
    chart: &'a Path,
}

impl Tool<'_> {
    fn check(&self, name: &str) -> Result<()> {
        self.helm(&["lint", "--strict"], true)?;
        let all: Vec<&str> = EVERYTHING.iter().flat_map(|value| ["--set", value]).collect();
        let rendered = self.helm(&[&["template", "demo"][..], &all].concat(), true)?;
        ensure!(rendered.contains("kind: PrometheusRule"), "{rendered}");
        ensure!(rendered.contains("namespace: team-b"), "{rendered}");
        let misspelt = self.helm(&["template", "demo", "--set", "replica=2"], true);
        ensure!(misspelt.is_err(), "a misspelt value was accepted");
        let before = self.objects()?;
        let place = ["--namespace", "operators", "--create-namespace", "--set", "crds.keep=false"];
        self.helm(&[&["install", "demo"][..], &place].concat(), true)?;
        ensure!(self.objects()? != before, "nothing was installed");
        self.helm(&[&["upgrade", "demo"][..], &place, &["--set", "replicas=2"]].concat(), true)?;
        self.helm(&["uninstall", "demo", "--namespace", "operators", "--wait"], false)?;
        let after = self.objects()?;
        ensure!(after == before, "left behind: before {before}, after {after}");
        println!("── charts: {name} was installed, upgraded and uninstalled, and left nothing");
        Ok(())
    }

    fn helm(&self, arguments: &[&str], with_chart: bool) -> Result<String> {
        let mut command = Command::new(self.helm);
        // The chart stands after the names.
        let at = if arguments[0] == "lint" { 1 } else { 2 };
        command.args(&arguments[..at]);
        if with_chart {
            command.arg(self.chart);
        }
        command.args(&arguments[at..]).env("KUBECONFIG", self.kubeconfig);
        self.output(command)
    }

    /// The names of all objects that charts may create, except those that the cluster itself makes.
    fn objects(&self) -> Result<String> {
        let mut command = Command::new("kubectl");
        command.args(["get", KINDS, "--all-namespaces", "--no-headers", "-o"]);
        command.arg("custom-columns=KIND:.kind,NS:.metadata.namespace,NAME:.metadata.name");
        let text = self.output({
            command.env("KUBECONFIG", self.kubeconfig);
            command
        })?;
        let of_cluster = ["kube-root-ca.crt", "ServiceAccount   operators   default"];
        let is_made = |line: &&str| {
            let line = line.split_whitespace().collect::<Vec<_>>().join("   ");
            !of_cluster.iter().any(|own| line.contains(own))
        };
        let mut lines: Vec<&str> = text.lines().filter(is_made).collect();
        lines.sort_unstable();
        Ok(lines
            .iter()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join("/") + "\n")
            .collect())
    }

    fn output(&self, mut command: Command) -> Result<String> {
        let output = command.output().context("it cannot be run")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{command:?} failed: {text}{errors}");
        Ok(text)
    }
}
