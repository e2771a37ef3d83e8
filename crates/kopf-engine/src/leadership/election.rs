//! Keeps the Lease of the leader, or waits for it.

use std::sync::Arc;
use std::time::SystemTime;

use kopf_core::election::{Election, Step, Term, Times, Write};
use kopf_core::queue::Moment;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::leases::{Leases, News, Written};
use super::{Share, Tenure};
use crate::operator::clock::Clock;
use crate::serving::status::{Board, LeadershipStatus};

/// This replica as a candidate.
pub(crate) struct Candidate {
    leases: Leases,
    name: String,
    election: Election,
    tenure: Arc<Tenure>,
    board: Arc<Board>,
    clock: Clock,
    origin: Instant,
    /// When the Lease was last read or written.
    looked_at: Moment,
    /// Whether failures were told of.
    is_failing: bool,
    leads: bool,
    holder: Option<String>,
    /// The term that was told last, and when its renewal was sent by the wall clock.
    told: Option<Term>,
    wall_sent_at: SystemTime,
}

impl Candidate {
    pub(crate) fn new(
        leases: Leases,
        name: String,
        identity: &str,
        times: Times,
        tenure: Arc<Tenure>,
        board: Arc<Board>,
        clock: Clock,
    ) -> Self {
        let election = Election::new(identity, times);
        Self {
            leases,
            name,
            election,
            tenure,
            board,
            clock,
            origin: Instant::now(),
            looked_at: Moment::ZERO,
            is_failing: false,
            leads: false,
            holder: None,
            told: None,
            wall_sent_at: SystemTime::now(),
        }
    }

    fn now(&self) -> Moment {
        self.origin.elapsed()
    }

    /// Runs until it is told to leave, and gives the Lease up then.
    pub(crate) async fn run(mut self, mut leaving: oneshot::Receiver<()>) {
        tracing::info!(
            lease = self.name,
            namespace = self.leases.namespace(),
            identity = self.election.identity(),
            "standing by until this replica leads"
        );
        let fields = format!("metadata.name={}", self.name);
        let mut hearing = self.leases.hear(None, Some(fields));
        loop {
            self.publish();
            let now = self.now();
            let until = match self.election.step(now, self.clock.now()) {
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
            // The watch may be deaf, so the Lease is read now and then as well.
            let look_at = match self.leads {
                true => until,
                false => self.looked_at + self.election.times().retry_period,
            };
            tokio::select! {
                _ = &mut leaving => break,
                news = hearing.next() => self.hear(news),
                () = tokio::time::sleep_until(self.origin + until.min(look_at)) => {
                    if self.now() >= look_at && !self.leads {
                        self.read().await;
                    }
                }
            }
        }
        drop(hearing);
        self.leave().await;
    }

    fn hear(&mut self, news: Vec<News>) {
        let now = self.now();
        for news in news {
            match news {
                News::Found(found) if found.name == self.name => {
                    self.election.observe(Some((found.record, found.version)), now);
                }
                News::Gone(name) if name == self.name => self.election.observe(None, now),
                News::Found(_) | News::Gone(_) => {}
            }
        }
    }

    async fn read(&mut self) {
        let answer = self.leases.read(&self.name).await;
        let now = self.now();
        self.looked_at = now;
        match answer {
            Ok(found) => {
                self.is_failing = false;
                self.election.observe(found.map(|found| (found.record, found.version)), now);
            }
            Err(error) => {
                self.complain(&error.report());
                self.election.fail(false, now);
            }
        }
    }

    async fn write(&mut self, write: &Write) {
        let sent_at = self.now();
        self.wall_sent_at = SystemTime::now();
        let written = self.leases.write(&self.name, write, serde_json::json!({})).await;
        let now = self.now();
        self.looked_at = now;
        match written {
            Written::Done(version) => {
                self.is_failing = false;
                self.election.succeed(write, version, sent_at, now);
            }
            Written::Conflict => self.election.fail(true, now),
            Written::Unknown(error) => {
                self.complain(&error.report());
                self.election.fail(false, now);
            }
        }
    }

    /// Failures in a row are told once.
    fn complain(&mut self, error: &str) {
        if !std::mem::replace(&mut self.is_failing, true) {
            let lease = &self.name;
            tracing::warn!(lease, error, "the Lease cannot be kept; trying again");
        }
    }

    /// Opens or closes the gate, and tells who leads.
    fn publish(&mut self) {
        let now = self.now();
        let term = self.election.term(now);
        match term {
            Some(term) if self.told != Some(term) => {
                let wall_until = self.wall_sent_at + self.election.times().renew_deadline;
                let until = self.origin + term.until;
                self.tenure.open(term.number, until, wall_until, Share::All);
            }
            Some(_) => {}
            None => self.tenure.close(),
        }
        self.told = term;
        let holder = self.election.holder().map(str::to_owned);
        let leads = term.is_some();
        let is_news = leads != self.leads || holder != self.holder;
        if !is_news {
            return;
        }
        let was_leading = std::mem::replace(&mut self.leads, leads);
        match (leads, &holder) {
            (true, _) if !was_leading => {
                let number = term.map(|term| term.number);
                tracing::info!(lease = self.name, term = number, "this replica leads now");
            }
            (false, Some(holder)) => {
                tracing::info!(lease = self.name, holder, "another replica leads; standing by");
            }
            (false, None) if was_leading => tracing::warn!("this replica does not lead any more"),
            _ => {}
        }
        self.holder = holder.clone();
        let identity = self.election.identity().to_owned();
        let number = term.map(|term| term.number);
        let status =
            LeadershipStatus { identity, leads, term: number, holder, ..Default::default() };
        self.board.update(|board| board.leadership = Some(status.clone()));
    }

    /// Gives the Lease up, so that another replica leads at once.
    async fn leave(&mut self) {
        // Read and written at most twice: others do not touch a Lease that is held.
        for _ in 0..4 {
            let step = self.election.leave(self.clock.now());
            self.tenure.close();
            match step {
                Some(Step::Read) => self.read().await,
                Some(Step::Write(write)) => {
                    self.write(&write).await;
                    tracing::info!(lease = self.name, "the Lease was given up");
                }
                Some(Step::Wait(_)) | None => return,
            }
        }
    }
}
