//! The tasks through which an operator takes part in leader election.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use crate::context::notice::Notice;
use crate::context::shared::Shared;
use crate::leadership::{self, Keeper};

/// The tasks that take part in leader election; they end when this is dropped.
pub(super) struct LeaderTasks {
    leaving: oneshot::Sender<()>,
    task: Option<AbortOnDropHandle<()>>,
    _watch: Option<AbortOnDropHandle<()>>,
}

impl LeaderTasks {
    /// Takes part if there may be other replicas.
    pub(super) fn start(keeper: Option<Keeper>, shared: &Arc<Shared>) -> Self {
        let reactor = Arc::downgrade(shared);
        shared.tenure.report_to(move |share| {
            // If it is gone, there is no reactor left.
            if let Some(shared) = reactor.upgrade() {
                shared.notices.send(Notice::Share(share));
            }
        });
        let (leaving, left) = oneshot::channel();
        let spawn = |keeper: Keeper| AbortOnDropHandle::new(tokio::spawn(keeper.run(left)));
        let task = keeper.map(spawn);
        let watch = || AbortOnDropHandle::new(tokio::spawn(Arc::clone(&shared.tenure).watch()));
        let watch = task.is_some().then(watch);
        Self { leaving, task, _watch: watch }
    }

    /// Lets another replica lead, if we do.
    pub(super) async fn leave(self) {
        let Some(task) = self.task else { return };
        // It has ended only if it is not needed.
        let _ = self.leaving.send(());
        let _ = tokio::time::timeout(leadership::LEAVING_GRACE, task).await;
    }
}
