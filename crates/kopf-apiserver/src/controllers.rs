//! The built-in controllers, which are ordinary clients of the server.
//!
//! `kopf-controllers` defines their behaviour; `runner` runs them in groups, one task each. The
//! server starts them on its first request; they end when the result is dropped.

mod recorder;
mod runner;
mod view;

use std::sync::Arc;

use tokio::sync::watch;

use crate::local::LocalClient;
use crate::stage_rules::StageRules;
use crate::store::Snapshot;
use runner::{Group, Progress};

/// Which of the controllers run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope {
    /// Whether pods are scheduled and run.
    pub(crate) nodes: bool,
    /// Whether the controllers, scheduler and kubelet record events.
    pub(crate) events: bool,
}

/// The configuration of the controllers.
pub(crate) struct Setup {
    /// Which of them run.
    pub(crate) scope: Scope,
    /// The CA bundle published in every namespace, in PEM.
    pub(crate) root_ca: String,
    /// Signs the tokens of service accounts.
    pub(crate) issuer: crate::tokens::TokenIssuer,
    /// The life cycle rules of pods.
    pub(crate) stages: Arc<StageRules>,
    /// The last snapshot that all controllers had completely handled while nothing was pending.
    pub(crate) settled: Option<Snapshot>,
}

/// Starts every controller as tokio tasks; dropping the result ends them.
pub(crate) fn start(client: &LocalClient, setup: &Setup) -> Running {
    let groups = kopf_controllers::groups(&kopf_controllers::Setup {
        nodes: setup.scope.nodes,
        root_ca: setup.root_ca.clone(),
        sign: {
            let issuer = setup.issuer.clone();
            Arc::new(move |claims| issuer.sign(claims))
        },
        stages: Arc::clone(setup.stages.book()),
    });
    let mut tasks = tokio::task::JoinSet::new();
    let mut progress = Vec::new();
    let seen = setup.settled.clone().unwrap_or_else(|| Snapshot::empty(0));
    for group in groups {
        let group = Group::new(client, group, setup.stages.changes(), seen.clone());
        let group = group.recording(setup.scope.events);
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
    /// Whether every controller has handled this version and has nothing pending.
    pub(crate) fn is_at_rest(&self, version: u64) -> bool {
        self.progress.iter().all(|progress| {
            let progress = progress.borrow();
            progress.is_at_rest && progress.version == version
        })
    }

    /// Resolves when every controller has handled all changes and nothing is due by the server's
    /// clock.
    pub(crate) async fn settle(&self, client: &LocalClient, stages: &StageRules) {
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
                    // The group's task is gone: nothing more will happen.
                    return;
                }
            }
            if client.snapshot().resource_version() == version {
                return;
            }
        }
    }
}
