//! The built-in controllers, as ordinary clients of the server.
//!
//! Each is a reducer from the objects it sees to the writes it wants (`world`), without tasks,
//! clocks or stores, and says in its header how faithful it is. `runner` runs them in groups, one
//! task each. Started by the server on its first request; they end when the result is dropped.

mod accounts;
mod aggregation;
pub(crate) mod bootstrap;
mod claims;
mod cron_jobs;
mod daemon_sets;
mod definitions;
mod deployments;
mod disruptions;
mod endpoints;
pub(crate) mod fields;
mod garbage;
mod jobs;
mod kinds;
mod namespaces;
mod pod_state;
mod pods;
mod policies;
mod quotas;
mod replica_sets;
mod replication_controllers;
mod revisions;
mod runner;
mod scheduler;
pub(crate) mod selector;
mod stateful_sets;
#[cfg(test)]
mod test_world;
mod view;
pub(crate) mod world;

use std::sync::Arc;

use tokio::sync::watch;

use crate::local::LocalClient;
use crate::stages::StageBook;
use crate::store::Snapshot;
use runner::{Group, Progress};
use world::Controller;

/// Which of the controllers run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope {
    /// Whether pods get a node and live.
    pub(crate) nodes: bool,
}

/// What controllers need besides the objects.
pub(crate) struct Setup {
    /// Which of them run.
    pub(crate) scope: Scope,
    /// The CA bundle published in every namespace, in PEM.
    pub(crate) root_ca: String,
    /// What pods do.
    pub(crate) stages: Arc<StageBook>,
    /// The state that other controllers were done with when they had nothing else in mind.
    pub(crate) settled: Option<Snapshot>,
}

/// Starts every controller as tokio tasks; dropping the result ends them.
pub(crate) fn start(client: &LocalClient, setup: &Setup) -> Running {
    let stages = || Arc::clone(&setup.stages);
    let lifecycle: Vec<Box<dyn Controller>> = vec![
        Box::new(garbage::GarbageCollector::default()),
        Box::new(namespaces::NamespaceLifecycle::default()),
        Box::new(definitions::DefinitionCleanup::default()),
        Box::new(aggregation::RoleAggregation),
        Box::new(quotas::Quotas),
        Box::new(policies::PolicyTypes),
        Box::new(accounts::NamespaceAccounts { root_ca: setup.root_ca.clone() }),
    ];
    let workloads: Vec<Box<dyn Controller>> = vec![
        Box::new(deployments::Deployments),
        Box::new(replica_sets::ReplicaSets),
        Box::new(stateful_sets::StatefulSets),
        Box::new(daemon_sets::DaemonSets),
        Box::new(jobs::Jobs),
        Box::new(cron_jobs::CronJobs),
        Box::new(replication_controllers::ReplicationControllers),
        Box::new(disruptions::Disruptions),
    ];
    let mut nodes: Vec<Box<dyn Controller>> = Vec::new();
    if setup.scope.nodes {
        nodes.push(Box::new(scheduler::Scheduler { stages: stages() }));
        nodes.push(Box::new(pods::PodLife { stages: stages(), last_address: 0 }));
    }
    let services: Vec<Box<dyn Controller>> =
        vec![Box::new(endpoints::ServiceEndpoints), Box::new(claims::Claims)];
    let mut tasks = tokio::task::JoinSet::new();
    let mut progress = Vec::new();
    let seen = setup.settled.clone().unwrap_or_else(|| Snapshot::empty(0));
    for group in [lifecycle, workloads, nodes, services] {
        let group = Group::new(client, group, setup.stages.changes(), seen.clone());
        progress.push(group.progress());
        tasks.spawn(group.run());
    }
    Running { _tasks: tasks, progress }
}

/// The running controllers of one server.
pub(crate) struct Running {
    // Aborts the tasks on drop.
    _tasks: tokio::task::JoinSet<()>,
    progress: Vec<watch::Receiver<Progress>>,
}

impl Running {
    /// Whether every controller is done with this version and has nothing else in mind.
    pub(crate) fn is_at_rest(&self, version: u64) -> bool {
        self.progress.iter().all(|progress| {
            let progress = progress.borrow();
            progress.is_at_rest && progress.version == version
        })
    }

    /// Resolves when every controller has dealt with everything that has happened, and nothing is
    /// due by the server's clock.
    pub(crate) async fn settle(&self, client: &LocalClient, stages: &StageBook) {
        loop {
            let version = client.snapshot().resource_version();
            let pokes = *stages.changes().borrow();
            for progress in &self.progress {
                let mut progress = progress.clone();
                let is_done = |progress: &Progress| {
                    progress.version >= version
                        && progress.pokes >= pokes
                        && progress.wake_at.is_none_or(|wake_at| wake_at > client.clock().now())
                };
                if progress.wait_for(is_done).await.is_err() {
                    // The group's task is gone: nothing will happen any more.
                    return;
                }
            }
            if client.snapshot().resource_version() == version {
                return;
            }
        }
    }
}
