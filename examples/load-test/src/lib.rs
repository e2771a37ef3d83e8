//! What you learn: an object whose state is derived from its children, which end and are recreated.
//!
//! A LoadTest starts Pods that send requests to a service. `launch` creates the Pods of a run, and
//! `observe` derives the state from them whenever one changes, without a request to the cluster.
//! Runs are numbered by the generation of the LoadTest, and all names are derived from it, so that
//! anything that was interrupted can simply be repeated.

mod pod;
mod progress;

use k8s_openapi::api::core::v1::Pod;
use kopf::children::{Children, Owner};
use kopf::input::{Namespace, Uid};
use kopf::prelude::*;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, CustomResource, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use progress::PodLife;

pub use pod::RUN_LABEL;

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
    /// The work of every Pod.
    pub test: TestSpec,
}

/// The work of every Pod.
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

/// The status of a load test.
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
    /// All Pods have succeeded.
    Finished,
    /// All Pods have ended, and some of them have failed.
    Failed,
}

/// A failed Pod.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The Pod.
    pub pod: String,
    /// The reason.
    pub reason: String,
    /// The exit code of its container, if it has ended.
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

/// Starts a run, replacing the previous one if there was one.
#[kopf::on::create(LoadTest, needs = ["create,patch,deletecollection pods"])]
#[kopf::on::update(LoadTest, field = "spec")]
pub async fn launch(
    this: &LoadTest,
    owner: Owner,
    uid: Uid,
    namespace: Namespace,
    client: Client,
    status: &mut Status<LoadTestStatus>,
) -> Result {
    let run = this.metadata.generation.unwrap_or_default();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let former = ListParams::default().labels(&format!("kopf.dev/owner={uid},{RUN_LABEL}!={run}"));
    pods.delete_collection(&DeleteParams::default(), &former).await?;
    let mut children = Vec::new();
    for number in 0..this.spec.replicas {
        let pod = pod::template(&this.name_any(), run, number, &this.spec.test);
        children.push(owner.apply(&client, pod).await?.name_any());
    }
    tracing::info!("run {run} has {} Pods", children.len());
    **status = LoadTestStatus {
        children,
        launched_generation: run,
        completed_generation: status.completed_generation,
        ..LoadTestStatus::default()
    };
    Ok(())
}

/// Derives the state of a run from its Pods, whenever one of them changes.
#[kopf::on::observe(LoadTest, children(Pod), when = |test: &LoadTest| !is_over(test))]
pub async fn observe(this: &LoadTest, pods: &Children<Pod>, status: &mut Status<LoadTestStatus>) {
    let run = this.metadata.generation.unwrap_or_default();
    if status.launched_generation != run {
        return; // `launch` has not finished yet
    }
    let life = |name: &String| {
        let pod = pods.iter().find(|pod| pod.name_any() == *name);
        pod.map_or_else(|| PodLife::lost(name), PodLife::of)
    };
    let lives: Vec<PodLife> = status.children.iter().map(life).collect();
    status.state = progress::state(&lives);
    status.failures = lives.iter().filter_map(PodLife::failure).collect();
    if matches!(status.state, State::Finished | State::Failed) {
        status.completed_generation = run;
    }
}

fn is_over(test: &LoadTest) -> bool {
    let completed = test.status.as_ref().map(|status| status.completed_generation);
    completed.is_some_and(|run| Some(run) == test.metadata.generation)
}

/// The operator. Deletion needs no handler: the cluster removes the Pods together with their owner.
pub fn operator() -> kopf::Operator {
    kopf::operator!("load-test", [launch, observe])
}
