//! Derives the state of a run from its Pods. Pure.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

use crate::{Failure, State};

/// The relevant state of a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodLife {
    name: String,
    phase: Phase,
    reason: String,
    exit_code: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
    Succeeded,
    Failed,
}

impl PodLife {
    /// Reads the state of a Pod.
    pub(crate) fn of(pod: &Pod) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let phase = match status.phase.as_deref() {
            Some("Running") => Phase::Running,
            Some("Succeeded") => Phase::Succeeded,
            Some("Failed") => Phase::Failed,
            _ => Phase::Waiting,
        };
        let containers = status.container_statuses.unwrap_or_default();
        let ended = containers.into_iter().find_map(|it| it.state?.terminated);
        let exit_code = ended.as_ref().map(|ended| ended.exit_code);
        // An evicted Pod has a reason itself; otherwise its container has one.
        let reason = status.reason.or_else(|| ended?.reason).unwrap_or_default();
        Self { name: pod.name_any(), phase, reason, exit_code }
    }

    /// The state of a Pod that was deleted.
    pub(crate) fn lost(name: &str) -> Self {
        let reason = "Deleted".into();
        Self { name: name.into(), phase: Phase::Failed, reason, exit_code: None }
    }

    /// The failure, if the Pod has failed.
    pub(crate) fn failure(&self) -> Option<Failure> {
        (self.phase == Phase::Failed).then(|| Failure {
            pod: self.name.clone(),
            reason: self.reason.clone(),
            exit_code: self.exit_code,
        })
    }
}

/// The state of a run with these Pods.
pub(crate) fn state(lives: &[PodLife]) -> State {
    let any = |phase| lives.iter().any(|life| life.phase == phase);
    let all_ended = !any(Phase::Waiting) && !any(Phase::Running);
    match (all_ended, any(Phase::Failed)) {
        (true, false) => State::Finished,
        (true, true) => State::Failed,
        (false, _) if lives.iter().all(|life| life.phase == Phase::Waiting) => State::Pending,
        (false, _) => State::Executing,
    }
}
