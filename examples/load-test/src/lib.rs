//! What you learn: an object whose state follows from its children: an index, a timer, re-runs.
//!
//! A LoadTest starts Pods that send requests to a service. `launch` makes the Pods of a run,
//! `pods_by_test` remembers how all Pods are doing, and `observe` concludes the state from that,
//! without asking the cluster. Runs are numbered by the generation of the LoadTest, and all names
//! follow from it: whatever was interrupted is simply done again.

mod pod;
mod progress;

use k8s_openapi::api::core::v1::Pod;
use kopf::prelude::*;
use kube::api::{DeleteParams, ListParams, Patch as Change, PatchParams};
use kube::{Api, CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use pod::{RUN_LABEL, TEST_LABEL};
pub use progress::PodLife;

/// A test that is run by several Pods at once.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.org", version = "v1", kind = "LoadTest", namespaced)]
#[kube(status = "LoadTestStatus", shortname = "ld")]
#[kube(printcolumn = r#"{"name": "Children", "type": "string", "jsonPath": ".status.children",
    "description": "The Pods of the current run."}"#)]
#[kube(printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.state",
    "description": "The state of the test: pending, executing, failed or finished."}"#)]
pub struct LoadTestSpec {
    /// How many Pods send requests at the same time.
    #[schemars(range(min = 1, max = 1000))]
    pub replicas: u32,
    /// What every Pod does.
    pub test: TestSpec,
}

/// What every Pod does.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestSpec {
    /// The HTTP method.
    #[serde(default = "get")]
    #[schemars(regex(pattern = r"^[A-Z]+$"))]
    pub method: String,
    /// The host: a service of the same namespace, or `name.namespace`, optionally with a port.
    pub service_name: String,
    /// The path of the URL.
    #[serde(default = "root")]
    #[schemars(regex(pattern = r"^/"))]
    pub path: String,
    /// How many requests a Pod sends.
    #[serde(default = "once")]
    #[schemars(range(min = 1))]
    pub repeat: u32,
}

/// What has become of it.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LoadTestStatus {
    /// The state of the current run.
    pub state: State,
    /// The names of the Pods of the current run.
    pub children: Vec<String>,
    /// The Pods that have failed so far.
    pub failures: Vec<Failure>,
    /// The generation whose Pods were started.
    pub launched_generation: i64,
    /// The generation whose Pods have all ended.
    pub completed_generation: i64,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// No Pod runs yet.
    #[default]
    Pending,
    /// Some Pods have started, and not all have ended.
    Executing,
    /// All Pods have ended well.
    Finished,
    /// All Pods have ended, and some of them badly.
    Failed,
}

/// A Pod that has failed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The Pod.
    pub pod: String,
    /// Why.
    pub reason: String,
    /// How its container ended, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

fn get() -> String {
    "GET".into()
}

fn root() -> String {
    "/".into()
}

fn once() -> u32 {
    1
}

/// Starts a run, in place of the former one if there was any.
#[kopf::on::create(LoadTest, needs = ["create,patch,deletecollection pods"])]
#[kopf::on::update(LoadTest, field = "spec")]
pub async fn launch(
    this: &LoadTest,
    owner: Owner,
    uid: Uid,
    namespace: Namespace,
    client: Client,
    status: &mut Status<LoadTestStatus>,
    log: Log,
) -> Result {
    let run = this.metadata.generation.unwrap_or_default();
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    let former = format!("{TEST_LABEL}={uid},{RUN_LABEL}!={run}");
    delete(&pods, &former).await?;

    let applying = PatchParams::apply("load-test").force();
    let mut children = Vec::new();
    for number in 0..this.spec.replicas {
        let pod =
            owner.adopt(pod::template(&this.name_any(), &uid, run, number, &this.spec.test))?;
        let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        pods.patch(&name, &applying, &Change::Apply(&pod)).await?;
        children.push(name);
    }
    log.info(format!("run {run} has {} Pods", children.len()));
    **status = LoadTestStatus {
        children,
        launched_generation: run,
        completed_generation: status.completed_generation,
        ..LoadTestStatus::default()
    };
    Ok(())
}

/// How all Pods of all tests are doing, by the uid of the test.
#[kopf::index(Pod, labels = {"example.org/loadtest": present})]
pub fn pods_by_test(pod: &Pod) -> Option<(String, PodLife)> {
    Some((pod.labels().get(TEST_LABEL)?.clone(), PodLife::of(pod)))
}

/// Concludes the state of a run from its Pods, until all of them have ended.
#[kopf::timer(
    LoadTest,
    interval = "1s",
    when = |test: &LoadTest| !is_over(test),
    needs = ["get pods"],
)]
pub async fn observe(
    this: &LoadTest,
    uid: Uid,
    pods: &Index<pods_by_test>,
    status: &mut Status<LoadTestStatus>,
    namespace: Namespace,
    client: Client,
) -> Result {
    let run = this.metadata.generation.unwrap_or_default();
    if status.launched_generation != run {
        return Ok(()); // `launch` is still to come, or busy
    }
    let known = pods.get(&uid.0);
    let mut lives = Vec::new();
    for child in &status.children {
        match known.iter().find(|life| life.name == *child) {
            Some(life) => lives.push(PodLife::clone(life)),
            // Not seen yet, or gone: the cluster knows which.
            None => {
                let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
                let found = pods.get_opt(child).await?;
                lives.push(found.map_or_else(|| PodLife::lost(child), |pod| PodLife::of(&pod)));
            }
        }
    }
    status.state = progress::state(&lives);
    status.failures = lives.iter().filter_map(PodLife::failure).collect();
    if matches!(status.state, State::Finished | State::Failed) {
        status.completed_generation = run;
    }
    Ok(())
}

fn is_over(test: &LoadTest) -> bool {
    let completed = test.status.as_ref().map(|status| status.completed_generation);
    completed.is_some_and(|run| Some(run) == test.metadata.generation)
}

/// Deletes the Pods of all runs; the LoadTest stays until that is done.
#[kopf::on::delete(LoadTest, needs = ["deletecollection pods"])]
pub async fn stop(uid: Uid, namespace: Namespace, client: Client) -> Result {
    delete(&Api::namespaced(client, &namespace), &format!("{TEST_LABEL}={uid}")).await
}

async fn delete(pods: &Api<Pod>, labels: &str) -> Result {
    pods.delete_collection(&DeleteParams::default(), &ListParams::default().labels(labels)).await?;
    Ok(())
}

/// The operator.
pub fn operator() -> kopf::Operator {
    kopf::operator!("load-test", [launch, pods_by_test, observe, stop])
}
