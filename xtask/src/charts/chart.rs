//! One Helm chart, from lint to uninstallation.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::output;

/// Enables all options that are off by default.
const EVERYTHING: [&str; 8] = [
    "metrics.enabled=true",
    "metrics.serviceMonitor.enabled=true",
    "metrics.alerts.enabled=true",
    "metrics.dashboard.enabled=true",
    "networkPolicy.enabled=true",
    "networkPolicy.metricsFrom={monitoring}",
    "podDisruptionBudget.enabled=true",
    "namespaces={team-a,team-b}",
];
/// The kinds that a chart may create in a cluster without the Prometheus operator.
const KINDS: &str = "deployments,services,serviceaccounts,roles,rolebindings,clusterroles,\
                     clusterrolebindings,customresourcedefinitions,networkpolicies,\
                     poddisruptionbudgets,configmaps,secrets,leases,pods";
/// The release and the namespace.
const PLACE: [&str; 5] =
    ["--namespace", "operators", "--create-namespace", "--set", "crds.keep=false"];
/// Waits until the Pods are ready.
const WAIT: [&str; 3] = ["--wait", "--timeout", "60s"];

/// A chart and the cluster to install it in.
pub(super) struct Chart<'a> {
    pub(super) helm: &'a Path,
    pub(super) kubeconfig: &'a Path,
    pub(super) folder: &'a Path,
}

impl Chart<'_> {
    pub(super) fn check(&self, name: &str) -> Result<()> {
        self.lint()?;
        let before = self.objects()?;
        self.helm(&[&["install", "demo"][..], &PLACE, &WAIT].concat(), true)?;
        ensure!(self.objects()? != before, "nothing was installed");
        self.helm(&["test", "demo", "--namespace", "operators", "--timeout", "60s"], false)?;
        let more = ["--set", "replicas=2", "--set", "networkPolicy.enabled=true"];
        self.helm(&[&["upgrade", "demo"][..], &PLACE, &WAIT, &more].concat(), true)?;
        let scaled = self.kubectl(&["get", "deployments", "-n", "operators", "-o", "name"])?;
        ensure!(scaled.lines().count() == 1, "{scaled}");
        self.helm(&["uninstall", "demo", "--namespace", "operators", "--wait"], false)?;
        self.check_nothing_left(&before)?;
        // Once more with rights in some namespaces only, and with all options.
        for namespace in ["team-a", "team-b"] {
            let _ = self.kubectl(&["create", "namespace", namespace]);
        }
        let optional = EVERYTHING.iter().filter(|it| !needs_prometheus(it));
        let optional: Vec<&str> = optional.flat_map(|value| ["--set", value]).collect();
        let before = self.objects()?;
        self.helm(&[&["install", "demo"][..], &PLACE, &WAIT, &optional].concat(), true)?;
        self.helm(&["uninstall", "demo", "--namespace", "operators", "--wait"], false)?;
        self.check_nothing_left(&before)?;
        println!(
            "── charts: {name} was installed, tested, upgraded and uninstalled, and left nothing"
        );
        Ok(())
    }

    fn lint(&self) -> Result<()> {
        self.helm(&["lint", "--strict"], true)?;
        let all: Vec<&str> = EVERYTHING.iter().flat_map(|value| ["--set", value]).collect();
        let rendered = self.helm(&[&["template", "demo"][..], &all].concat(), true)?;
        ensure!(rendered.contains("kind: PrometheusRule"), "{rendered}");
        ensure!(rendered.contains("--namespace=team-b"), "{rendered}");
        ensure!(rendered.contains("kubernetes.io/metadata.name: monitoring"), "{rendered}");
        let misspelt = self.helm(&["template", "demo", "--set", "replica=2"], true);
        ensure!(misspelt.is_err(), "a misspelt value was accepted");
        Ok(())
    }

    fn check_nothing_left(&self, before: &str) -> Result<()> {
        let mut after = self.objects()?;
        // The controllers of the cluster need a moment to delete dependents.
        for _ in 0..50 {
            if after == before {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
            after = self.objects()?;
        }
        ensure!(after == before, "left behind: before {before}, after {after}");
        Ok(())
    }

    fn helm(&self, arguments: &[&str], with_chart: bool) -> Result<String> {
        let mut command = Command::new(self.helm);
        // The chart follows the names.
        let at = if arguments[0] == "lint" { 1 } else { 2 };
        command.args(&arguments[..at]);
        if with_chart {
            command.arg(self.folder);
        }
        command.args(&arguments[at..]).env("KUBECONFIG", self.kubeconfig);
        output(command)
    }

    fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("kubectl");
        command.args(arguments).env("KUBECONFIG", self.kubeconfig);
        output(command)
    }

    /// The names of all objects that charts may create, except those that the cluster itself
    /// creates.
    fn objects(&self) -> Result<String> {
        let columns = "custom-columns=KIND:.kind,NS:.metadata.namespace,NAME:.metadata.name";
        let text = self.kubectl(&["get", KINDS, "-A", "--no-headers", "-o", columns])?;
        let is_made =
            |line: &String| !line.contains("kube-root-ca.crt") && !line.ends_with("/default");
        let joined = |line: &str| line.split_whitespace().collect::<Vec<_>>().join("/");
        let mut lines: Vec<String> = text.lines().map(joined).filter(is_made).collect();
        lines.sort_unstable();
        Ok(lines.join("\n"))
    }
}

fn needs_prometheus(value: &str) -> bool {
    value.starts_with("metrics.serviceMonitor") || value.starts_with("metrics.alerts")
}
