//! The shutdown of a reactor, in order: no new work, running work, unwritten progress, daemons.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use kopf_core::invoke::StopReason;
use kopf_core::queue::{Next, Urgency};
use kopf_core::settings::Background;
use kopf_core::write::Version;
use tokio::time::Instant;

use super::{Reactor, group_of, jobs};
use crate::clock::after;
use crate::cycle::{self, Mode};
use crate::key::Key;
use crate::reactor::message::Message;

impl Reactor {
    /// Writes the last snapshot, when no work is left.
    async fn save_last(&mut self) {
        // Before anything is watched, the existing file is still right.
        let snapshots = self.watches.snapshots().filter(|_| self.watches.iter().next().is_some());
        if let Some(snapshots) = snapshots {
            snapshots.save_last(self.watches.snapshot()).await;
        }
    }

    /// Shuts down within the limits of the settings.
    pub(crate) async fn close(mut self) {
        let settings = self.shared.settings();
        self.discovery.close();
        self.watches.pause();
        self.children.close();
        let deadline = after(settings.queueing.exit_timeout);
        self.drain(deadline).await;
        if !self.dispatch.cycles.is_empty() {
            let left = self.dispatch.cycles.len();
            tracing::warn!(left, "cancelling handlers that did not finish in time");
            self.dispatch.cycles.shutdown().await;
            while let Ok(message) = self.messages.try_recv() {
                if let Message::Done(done) = message {
                    self.take_back(done);
                }
            }
        }
        self.persist(settings.queueing.exit_timeout).await;
        self.stop_daemons(&settings.background).await;
        self.save_last().await;
    }

    /// Waits for the running cycles.
    async fn drain(&mut self, deadline: Instant) {
        while !self.dispatch.cycles.is_empty() {
            tokio::select! {
                Some(message) = self.messages.recv() => {
                    if let Message::Done(done) = message {
                        self.take_back(done);
                    }
                }
                Some(_) = self.dispatch.cycles.join_next() => {}
                () = tokio::time::sleep_until(deadline) => return,
            }
        }
        while let Ok(message) = self.messages.try_recv() {
            if let Message::Done(done) = message {
                self.take_back(done);
            }
        }
    }

    /// Writes what is only in memory, so that the next process continues from there: progress that
    /// could wait, and what the server has not accepted so far.
    async fn persist(&mut self, limit: Duration) {
        let mut keys = Vec::new();
        for (id, watch) in self.watches.iter_mut() {
            for (uid, record) in watch.store.iter_mut() {
                let Some(memory) = &record.memory else { continue };
                let is_unwritten = memory.progress.is_some() || !memory.unsent.is_empty();
                if let (true, Some(body)) = (is_unwritten, &record.body) {
                    keys.push(Key { watch: id, group: group_of(body), uid });
                }
            }
        }
        self.dispatch.begin_closing();
        for key in keys {
            self.dispatch.offer(key, Urgency::Fresh);
        }
        let is_barred = self.readiness.is_barred();
        let mut closings = FuturesUnordered::new();
        while let Some(ticket) = self.dispatch.take() {
            let (sharing, watches) = (&self.dispatch.sharing, &mut self.watches);
            match jobs::prepare(watches, &mut self.children, sharing, is_barred, ticket) {
                Ok(mut job) => {
                    // A state older than the handled one decides nothing.
                    let is_outdated = Version::of(&job.object) < job.version;
                    job.mode = if is_outdated { Mode::EventsOnly } else { Mode::Closing };
                    closings.push(Box::pin(cycle::run(Arc::clone(&self.shared), job)));
                }
                Err(ticket) => {
                    self.dispatch.done(ticket, Next::Rest);
                }
            }
        }
        let deadline = after(limit);
        loop {
            match tokio::time::timeout_at(deadline, closings.next()).await {
                Ok(Some(done)) => self.take_back(done),
                Ok(None) => return,
                Err(_) => {
                    let left = closings.len();
                    tracing::warn!(left, "could not store the progress of some handlers in time");
                    return;
                }
            }
        }
    }

    async fn stop_daemons(&mut self, settings: &Background) {
        let mut stopping = Vec::new();
        self.shared.background.exiting.cancel();
        for (_, watch) in self.watches.iter_mut() {
            for (_, record) in watch.store.iter_mut() {
                let Some(memory) = &mut record.memory else { continue };
                for daemon in memory.background.take() {
                    stopping.push(daemon.stop(StopReason::OPERATOR_EXITING, settings.clone()));
                }
            }
        }
        join_all(stopping).await;
        // Those of objects that were gone before the shutdown, and of the last pause; each has its
        // own timeout.
        self.shared.background.stopping.close();
        self.shared.background.stopping.wait().await;
    }
}
