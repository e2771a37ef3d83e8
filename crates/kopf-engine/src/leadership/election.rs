//! Maintains the Lease of the leader, or waits for it.

use std::time::Duration;

use kopf_core::election::{Election, Step, Term, Times, Write};
use kopf_core::queue::Moment;
use kopf_model::lease::{LABEL_MAX, LEADER_LABEL};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::Share;
use super::leases::{LeaseChange, Written};
use super::replica::Replica;
use crate::reporting::status::LeadershipStatus;

/// What the event says about a replica at the end of its leadership.
const STOPPED: &str = "stopped leading";
/// How long a replica that ends waits for this event to be posted.
const LAST_EVENT_TIMEOUT: Duration = Duration::from_secs(1);

/// This replica as a candidate.
pub(crate) struct Candidate {
    replica: Replica,
    name: String,
    election: Election,
    /// When the Lease was last read or written.
    looked_at: Moment,
    leads: bool,
    holder: Option<String>,
    /// The term that was last published.
    last_published: Option<Term>,
}

impl Candidate {
    pub(crate) fn new(replica: Replica, name: String, identity: &str, times: Times) -> Self {
        Self {
            replica,
            name,
            election: Election::new(identity, times),
            looked_at: Moment::ZERO,
            leads: false,
            holder: None,
            last_published: None,
        }
    }

    fn now(&self) -> Moment {
        self.replica.now()
    }

    /// Runs until it must stop, and then releases the Lease.
    pub(crate) async fn run(mut self, mut leaving: oneshot::Receiver<()>) {
        tracing::info!(
            lease = self.name,
            namespace = self.replica.leases.namespace(),
            identity = self.election.identity(),
            "standing by until this replica leads"
        );
        let fields = format!("metadata.name={}", self.name);
        let mut lease_watch = self.replica.leases.watch_changes(None, Some(fields));
        loop {
            self.publish();
            let now = self.now();
            let until = match self.election.step(now, self.replica.clock.now()) {
                Step::Read => {
                    self.read().await;
                    continue;
                }
                Step::Write(write) => {
                    self.write(&write).await;
                    continue;
                }
                Step::Wait(until) => until,
            };
            // The watch may miss events, so the Lease is also read periodically.
            let look_at = match self.leads {
                true => until,
                false => self.looked_at + self.election.times().retry_period,
            };
            tokio::select! {
                _ = &mut leaving => break,
                changes = lease_watch.next() => self.process_changes(changes),
                () = tokio::time::sleep_until(self.replica.origin + until.min(look_at)) => {
                    if self.now() >= look_at && !self.leads {
                        self.read().await;
                    }
                }
            }
        }
        drop(lease_watch);
        self.leave().await;
    }

    fn process_changes(&mut self, changes: Vec<LeaseChange>) {
        let now = self.now();
        for change in changes {
            match change {
                LeaseChange::Found(found) if found.name == self.name => {
                    self.election.observe(Some((found.record, found.version)), now);
                }
                LeaseChange::Gone(name) if name == self.name => self.election.observe(None, now),
                LeaseChange::Found(_) | LeaseChange::Gone(_) => {}
            }
        }
    }

    async fn read(&mut self) {
        let answer = self.replica.leases.read(&self.name).await;
        let now = self.now();
        self.looked_at = now;
        match answer {
            Ok(found) => {
                self.replica.note_success();
                self.election.observe(found.map(|found| (found.record, found.version)), now);
            }
            Err(error) => {
                self.log_failure(&error.report());
                self.election.fail(false, now);
            }
        }
    }

    /// The label by which `kopf explain` finds the Lease.
    fn metadata(&self) -> Value {
        match self.name.len() {
            ..=LABEL_MAX => json!({"labels": {LEADER_LABEL: self.name}}),
            _ => json!({}),
        }
    }

    async fn write(&mut self, write: &Write) {
        let sent_at = self.now();
        self.replica.note_sent();
        let written = self.replica.leases.write(&self.name, write, self.metadata()).await;
        let now = self.now();
        self.looked_at = now;
        match written {
            Written::Done(version) => {
                self.replica.note_success();
                self.election.succeed(write, version, sent_at, now);
            }
            Written::Conflict => self.election.fail(true, now),
            Written::Unknown(error) => {
                self.log_failure(&error.report());
                self.election.fail(false, now);
            }
        }
    }

    /// Failures in a row are logged once.
    fn log_failure(&mut self, error: &str) {
        if self.replica.note_failure() {
            let lease = &self.name;
            tracing::warn!(lease, error, "could not read or renew the Lease; retrying");
        }
    }

    /// Opens or closes the gate, and publishes the leader.
    fn publish(&mut self) {
        let now = self.now();
        let term = self.election.term(now);
        match term {
            Some(term) if self.last_published != Some(term) => {
                let deadline = self.election.times().renew_deadline;
                self.replica.open_gate(term, deadline, Share::All);
            }
            Some(_) => {}
            None => self.replica.tenure.close(),
        }
        self.last_published = term;
        let holder = self.election.holder().map(str::to_owned);
        let leads = term.is_some();
        let has_changed = leads != self.leads || holder != self.holder;
        if !has_changed {
            return;
        }
        let was_leading = std::mem::replace(&mut self.leads, leads);
        match (leads, &holder) {
            (true, _) if !was_leading => {
                let number = term.map(|term| term.number);
                tracing::info!(lease = self.name, term = number, "this replica leads now");
                let identity = self.election.identity();
                self.replica.leases.announce(&self.name, identity, "became leader");
            }
            (false, Some(holder)) => {
                tracing::info!(lease = self.name, holder, "another replica leads; standing by");
            }
            (false, None) if was_leading => {
                tracing::warn!("this replica does not lead any more");
                self.replica.leases.announce(&self.name, self.election.identity(), STOPPED);
            }
            _ => {}
        }
        self.holder = holder.clone();
        let identity = self.election.identity().to_owned();
        let number = term.map(|term| term.number);
        let status =
            LeadershipStatus { identity, leads, term: number, holder, ..Default::default() };
        self.replica.publish(&status);
    }

    /// Posts an event about the end of this leadership; another replica may lead already.
    async fn report_end(&mut self) {
        if !std::mem::replace(&mut self.leads, false) {
            return;
        }
        let identity = self.election.identity();
        if let Some(posting) = self.replica.leases.announce(&self.name, identity, STOPPED) {
            // The operator ends in any case.
            let _ = tokio::time::timeout(LAST_EVENT_TIMEOUT, posting).await;
        }
    }

    /// Releases the Lease, so that another replica leads at once.
    async fn leave(&mut self) {
        // Read and written at most twice: others do not touch a held Lease.
        for _ in 0..4 {
            let step = self.election.leave(self.replica.clock.now());
            self.replica.tenure.close();
            match step {
                Some(Step::Read) => self.read().await,
                Some(Step::Write(write)) => {
                    self.write(&write).await;
                    tracing::info!(lease = self.name, "the Lease was given up");
                    self.report_end().await;
                }
                Some(Step::Wait(_)) | None => return,
            }
        }
    }
}
