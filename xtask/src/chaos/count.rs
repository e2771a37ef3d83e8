//! `cargo xtask chaos --count`: random replicas end while thousands of objects are edited.
//!
//! Every call of the handler appends a line to a file outside of the cluster, which is the judge:
//! each change must have its side effect, and only once. A watch records which calls were stored.
//! The same is done to an operator of Go's controller-runtime that elects a leader.

mod judge;
mod report;
mod stored;
mod team;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::judge::{Edit, End, Evidence};
use self::stored::Stored;
use self::team::Replica;
use self::waits::QueueWaits;
use super::api::{Api, MERGE};
use super::{now, watcher};
use crate::kubeconfig::Endpoint;

pub(super) use self::judge::Verdict;
pub(super) use self::report::report;
pub(super) use self::team::{Team, build, copy};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PATIENCE: Duration = Duration::from_secs(120);
/// How many objects are created at a time.
const MAKERS: usize = 8;
/// How long the replicas may take to handle everything, at the start and at the end.
const SETTLE_TIMEOUT: Duration = Duration::from_mins(5);
const POLL_INTERVAL: Duration = Duration::from_secs(3);
/// How long repetitions may still come at the end.
const QUIET_PERIOD: Duration = Duration::from_secs(20);
/// The time from the end of one fault to the next: longer than a Lease, so that each is alone.
const PAUSE_MS: std::ops::Range<u64> = 18_000..30_000;
/// How long a killed replica is down.
const DOWN_MS: std::ops::Range<u64> = 0..10_000;

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) replicas: usize,
    pub(super) objects: usize,
    pub(super) length: Duration,
    pub(super) edits_per_second: f64,
    pub(super) seed: u64,
    /// Replicas are stopped with SIGTERM instead of being killed.
    pub(super) is_gentle: bool,
    /// The duration of Leases.
    pub(super) lease: Duration,
}

/// What is needed to play.
pub(super) struct Stage<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) kubeconfig: PathBuf,
    pub(super) folder: &'a Path,
    pub(super) plan: Plan,
}

/// An object to be edited.
struct Target {
    path: String,
    uid: String,
}

impl Stage<'_> {
    /// Runs one team in its own namespace, and judges it.
    pub(super) async fn play(&self, team: Team) -> Result<Verdict> {
        let mut api = Api::new(self.endpoint)?;
        let namespace = team.namespace();
        let body =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        api.ensure("/api/v1/namespaces", &body, PATIENCE).await?;
        api.ensure(DEFINITIONS, &definition(), PATIENCE).await?;
        let collection = format!("/apis/bench.kopf.dev/v1/namespaces/{namespace}/widgets");
        served(&mut api, &collection).await?;
        let stored = Stored::default();
        tokio::select! {
            verdict = self.play_watched(team, &collection, &stored) => verdict,
            _ = watcher::watch(self.endpoint, &collection, &stored) => {
                bail!("nobody watches the objects")
            }
        }
    }

    async fn play_watched(&self, team: Team, collection: &str, stored: &Stored) -> Result<Verdict> {
        let targets = self.create(collection).await?;
        println!("   {}: {} objects were created", team.name(), targets.len());
        let folder = self.folder.join(team.namespace());
        std::fs::create_dir_all(&folder)?;
        let mut replicas = self.start(team, &folder)?;
        let calls = folder.join("calls.jsonl");
        let first: BTreeMap<&str, u64> = targets.iter().map(|it| (it.uid.as_str(), 1)).collect();
        let took = self.settle(&calls, &first).await?;
        println!("   {}: all handled after {:.0} s", team.name(), took.as_secs_f64());
        // The first objects came all at once, so they had to wait.
        let waits_before = queue_waits(&replicas).await;
        let began = Instant::now();
        let (edits, (ends, mut queue_waits)) =
            tokio::try_join!(self.edit(&targets, began), self.end(team, &mut replicas, began))?;
        let mut last = first;
        for edit in &edits {
            last.insert(&edit.uid, edit.generation);
        }
        let settled = self.settle(&calls, &last).await;
        sleep(QUIET_PERIOD).await;
        queue_waits.add(&self::queue_waits(&replicas).await);
        queue_waits.subtract(&waits_before);
        drop(replicas);
        let text = std::fs::read_to_string(&calls)?;
        let evidence = Evidence {
            calls: judge::calls(&text),
            edits,
            ends,
            stored: stored.calls(),
            gaps: stored.gaps(),
            lease_seconds: self.plan.lease.as_secs_f64(),
            queue_waits,
        };
        std::fs::write(folder.join("evidence.json"), serde_json::to_string(&evidence)?)?;
        if let Err(error) = settled {
            println!("   {}: {error:#}", team.name());
        }
        Ok(judge::judge(team, &evidence))
    }

    fn start(&self, team: Team, folder: &Path) -> Result<Vec<Replica>> {
        let (kubeconfig, lease) = (&self.kubeconfig, self.plan.lease);
        let replica = |number| Replica::new(team, number, self.folder, folder, kubeconfig, lease);
        let mut replicas: Vec<Replica> =
            (0..self.plan.replicas).map(replica).collect::<Result<_>>()?;
        for replica in &mut replicas {
            replica.start()?;
        }
        Ok(replicas)
    }

    async fn create(&self, collection: &str) -> Result<Vec<Target>> {
        let mut makers = JoinSet::new();
        for maker in 0..MAKERS {
            let mut api = Api::new(self.endpoint)?;
            let (collection, objects) = (collection.to_owned(), self.plan.objects);
            makers.spawn(async move {
                let mut targets = Vec::new();
                for number in (maker..objects).step_by(MAKERS) {
                    targets.push(create(&mut api, &collection, number).await?);
                }
                anyhow::Ok(targets)
            });
        }
        let mut targets = Vec::new();
        while let Some(made) = makers.join_next().await {
            targets.extend(made??);
        }
        targets.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(targets)
    }

    /// Waits until there was an effect for these generations.
    async fn settle(&self, calls: &Path, wanted: &BTreeMap<&str, u64>) -> Result<Duration> {
        let began = Instant::now();
        loop {
            let text = std::fs::read_to_string(calls).unwrap_or_default();
            let seen: BTreeSet<(String, u64)> =
                judge::calls(&text).into_iter().map(|call| (call.uid, call.generation)).collect();
            let is_missing = |(uid, generation): &(&&str, &u64)| {
                !seen.contains(&((**uid).to_owned(), **generation))
            };
            let missing = wanted.iter().filter(is_missing).count();
            if missing == 0 {
                return Ok(began.elapsed());
            }
            ensure!(began.elapsed() < SETTLE_TIMEOUT, "{missing} objects were not handled in time");
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Edits random objects at a steady rate.
    async fn edit(&self, targets: &[Target], began: Instant) -> Result<Vec<Edit>> {
        let mut api = Api::new(self.endpoint)?;
        let mut random = fastrand::Rng::with_seed(self.plan.seed);
        let mut edits = Vec::new();
        let mut due = Duration::ZERO;
        for size in 1_000.. {
            // Between zero and twice the average pause.
            due += Duration::from_secs_f64(random.f64() * 2.0 / self.plan.edits_per_second);
            if due >= self.plan.length {
                break;
            }
            sleep(due.saturating_sub(began.elapsed())).await;
            let target = &targets[random.usize(..targets.len())];
            let sent_at = now();
            let body = json!({"spec": {"size": size}});
            let (status, answer) =
                api.send("PATCH", &target.path, MERGE, Some(&body), PATIENCE).await?;
            ensure!(status == 200, "could not edit {}: {status} {answer}", target.path);
            let generation = answer["metadata"]["generation"].as_u64().context("no generation")?;
            edits.push(Edit { uid: target.uid.clone(), generation, sent_at });
        }
        Ok(edits)
    }

    /// Kills or stops random replicas, one after another, and starts them again. Returns how long
    /// objects had waited in their queues.
    async fn end(
        &self,
        team: Team,
        replicas: &mut [Replica],
        began: Instant,
    ) -> Result<(Vec<End>, QueueWaits)> {
        let mut random = fastrand::Rng::with_seed(self.plan.seed ^ 0xdead);
        let (mut ends, mut queue_waits) = (Vec::new(), QueueWaits::default());
        loop {
            sleep(Duration::from_millis(random.u64(PAUSE_MS))).await;
            // The last fail-over must be over at the end.
            let left = self.plan.length.saturating_sub(began.elapsed());
            if left < Duration::from_millis(PAUSE_MS.end) {
                return Ok((ends, queue_waits));
            }
            let number = random.usize(..replicas.len());
            let replica = &mut replicas[number];
            queue_waits.add(&replica.queue_waits().await);
            let (is_killed, at) = (!self.plan.is_gentle, now());
            let pid = if is_killed { replica.kill()? } else { replica.stop().await? };
            // A kill counts when the process has ended.
            let at = if is_killed { now() } else { at };
            ends.push(End { pid, at, is_killed });
            let verb = if is_killed { "killed" } else { "stopped" };
            println!("   {}, {:.0?}: {verb} replica {number}", team.name(), began.elapsed());
            sleep(Duration::from_millis(random.u64(DOWN_MS))).await;
            replica.start()?;
        }
    }
}

/// How long objects have waited in the queues of these processes.
async fn queue_waits(replicas: &[Replica]) -> QueueWaits {
    let mut sum = QueueWaits::default();
    for replica in replicas {
        sum.add(&replica.queue_waits().await);
    }
    sum
}

async fn create(api: &mut Api, collection: &str, number: usize) -> Result<Target> {
    let name = format!("widget-{number}");
    let body = json!({
        "apiVersion": "bench.kopf.dev/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": number, "image": "registry.example.com/image:1", "note": "x".repeat(200)},
    });
    let path = format!("{collection}/{name}");
    let sent = api.send("POST", collection, "application/json", Some(&body), PATIENCE).await?;
    let (status, object) = match sent {
        // From an attempt without a response.
        (409, _) => api.get(&path, PATIENCE).await?,
        answer => answer,
    };
    let uid = object["metadata"]["uid"].as_str();
    let uid = uid.with_context(|| format!("could not create {name}: {status} {object}"))?;
    Ok(Target { path, uid: uid.to_owned() })
}

/// Waits until the server serves the resource.
async fn served(api: &mut Api, collection: &str) -> Result<()> {
    let began = Instant::now();
    while api.get(&format!("{collection}?limit=1"), PATIENCE).await?.0 != 200 {
        ensure!(began.elapsed() < PATIENCE, "the resource is not served");
        sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// With a status subresource, so that only edits of the specification advance the generation.
fn definition() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.bench.kopf.dev"},
        "spec": {
            "group": "bench.kopf.dev",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": open, "status": open},
                }},
            }],
        },
    })
}
