//! `kubectl apply -k` deploys the output of `manifests` in a cluster with RBAC.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Output};

use example_proofs::examples;
use kopf::prelude::*;
use kopf::testing::{World, WorldError};

/// Runs a command without blocking the server.
async fn output(mut command: Command) -> std::io::Result<Output> {
    tokio::task::spawn_blocking(move || command.output()).await.expect("nothing panics")
}

async fn succeed(command: Command) {
    let text = format!("{command:?}");
    let output = output(command).await.expect("it can be run");
    assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stderr));
}

fn kubectl(folder: &Path) -> Command {
    let mut kubectl = Command::new("kubectl");
    kubectl.env("KUBECONFIG", folder.join("kubeconfig"));
    kubectl.arg("--cache-dir").arg(folder.join("cache"));
    kubectl
}

#[kopf::test(rbac)]
async fn kubectl_applies_the_manifests_of_all(world: World) -> Result<(), WorldError> {
    world.in_real_time();
    let folder = tempfile::tempdir().expect("a folder of our own can be made");
    let folder = folder.path();
    if output(kubectl(folder)).await.is_err() {
        println!("skipped: there is no kubectl");
        return Ok(());
    }
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let listening = world.server().listen(address).await.expect("there is a free port");
    std::fs::write(folder.join("kubeconfig"), listening.kubeconfig()).expect("it is our folder");
    let deployments = world.objects("deployments.v1.apps").in_namespace("operators");
    for name in examples::NAMES {
        let deploy = folder.join(name);
        let mut manifests = Command::new(env!("CARGO_BIN_EXE_any-example"));
        manifests.env("EXAMPLE", name);
        manifests.args(["manifests", "--image", "demo:1", "--namespace", "operators", "--output"]);
        manifests.arg(&deploy);
        succeed(manifests).await;
        let mut apply = kubectl(folder);
        apply.args(["apply", "-k"]).arg(&deploy);
        succeed(apply).await;
    }
    for name in examples::NAMES {
        let operator = examples::operator(name).expect("all names are known");
        let is_available = |it: &Value| it["status"]["availableReplicas"] == 1;
        let deployed = deployments.until(operator.name(), "availability", is_available).await?;
        let account = &deployed["spec"]["template"]["spec"]["serviceAccountName"];
        assert_eq!(*account, *operator.name());
    }
    Ok(())
}
