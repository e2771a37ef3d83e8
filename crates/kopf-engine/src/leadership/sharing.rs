//! Keeps this replica's Lease among those that share the objects, and its part of the table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kopf_core::election::{Step, Term, Times, Write};
use kopf_core::queue::Moment;
use kopf_core::shards::{Membership, Ranges, Table, TableStep, TableWrite};
use kopf_model::lease::LeaseRecord;
use kopf_model::shards::{GROUP_LABEL, TABLE_ANNOTATION};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::leases::{Found, Leases, News, Written};
use super::{Share, Tenure};
use crate::operator::clock::Clock;
use crate::serving::status::{Board, LeadershipStatus};

/// The end of the name of the Lease that has the table.
const TABLE_SUFFIX: &str = "shards";

/// This replica as a member.
pub(crate) struct Sharer {
    leases: Leases,
    /// The name of the group: the beginning of the names of its Leases.
    group: String,
    membership: Membership,
    tenure: Arc<Tenure>,
    board: Arc<Board>,
    clock: Clock,
    origin: Instant,
    wall_sent_at: SystemTime,
    table_read_at: Moment,
    /// Nothing is done about the Leases of others before.
    others_at: Moment,
    told: Option<(Term, BTreeSet<u32>)>,
    /// What was reported last: our ranges, and how many members there are.
    reported: Option<(BTreeSet<u32>, usize)>,
    /// Counts the changes of our share; and those with which ranges were taken from the reactor.
    revision: u64,
    handed_over: BTreeMap<u32, u64>,
    is_failing: bool,
    /// Since when ranges are being given away, and how long that took the last time.
    draining_since: Option<Instant>,
    handover: Option<Duration>,
}

impl Sharer {
    #[expect(clippy::too_many_arguments, reason = "each is a different part of the engine")]
    pub(crate) fn new(
        leases: Leases,
        group: String,
        identity: &str,
        times: Times,
        ranges: Ranges,
        tenure: Arc<Tenure>,
        board: Arc<Board>,
        clock: Clock,
    ) -> Self {
        Self {
            leases,
            group,
            membership: Membership::new(identity, times, ranges),
            tenure,
            board,
            clock,
            origin: Instant::now(),
            wall_sent_at: SystemTime::now(),
            table_read_at: Moment::ZERO,
            others_at: Moment::ZERO,
            told: None,
            reported: None,
            revision: 0,
            handed_over: BTreeMap::new(),
            is_failing: false,
            draining_since: None,
            handover: None,
        }
    }

    fn now(&self) -> Moment {
        self.origin.elapsed()
    }

    fn name_of(&self, identity: &str) -> String {
        format!("{}-{identity}", self.group)
    }

    fn own_name(&mut self) -> String {
        let identity = self.membership.own().identity().to_owned();
        self.name_of(&identity)
    }

    fn table_name(&self) -> String {
        self.name_of(TABLE_SUFFIX)
    }

    fn metadata(&self) -> Value {
        json!({"labels": {GROUP_LABEL: self.group}})
    }

    /// Runs until it is told to leave, and gives everything up then.
    pub(crate) async fn run(mut self, mut leaving: oneshot::Receiver<()>) {
        let (group, namespace) = (self.group.clone(), self.leases.namespace().to_owned());
        let identity = self.membership.own().identity().to_owned();
        tracing::info!(group, namespace, identity, "sharing the objects with other replicas");
        let mut hearing = self.leases.hear(Some(format!("{GROUP_LABEL}={group}")), None);
        let tenure = Arc::clone(&self.tenure);
        loop {
            let drained = tenure.drained();
            let Some(until) = self.work().await else { continue };
            tokio::select! {
                _ = &mut leaving => break,
                news = hearing.next() => self.hear(news),
                () = drained => {}
                () = tokio::time::sleep_until(self.origin + until) => {}
            }
        }
        drop(hearing);
        self.leave().await;
    }

    /// Does one thing that is to be done; returns how long to wait if there is none.
    async fn work(&mut self) -> Option<Moment> {
        for (range, revision) in self.tenure.take_drained() {
            // It may have been ours again since.
            if self.handed_over.get(&range).is_some_and(|it| *it <= revision) {
                self.membership.drained(range);
            }
        }
        let now = self.now();
        self.membership.review(now);
        self.publish();
        let retry_period = self.membership.own().times().retry_period;
        let until = match self.membership.own().step(now, self.clock.now()) {
            Step::Read => {
                self.read_own().await;
                return None;
            }
            Step::Write(write) => {
                self.write_own(&write).await;
                return None;
            }
            Step::Wait(until) => until,
        };
        if now >= self.others_at && self.look_after_others(now).await {
            return None;
        }
        match self.membership.table_step(now) {
            TableStep::Read => self.read_table().await,
            TableStep::Write(write) => self.write_table(write).await,
            // The watch may be deaf, so the table is read now and then as well.
            TableStep::Rest if now >= self.table_read_at + retry_period => self.read_table().await,
            TableStep::Rest => {
                let look_at = self.table_read_at + retry_period;
                return Some(until.min(look_at).max(now + Duration::from_millis(1)));
            }
        }
        None
    }

    /// Ends the lives of those who are dead, and looks for owners that are not known; tells whether
    /// there was anything to do.
    async fn look_after_others(&mut self, now: Moment) -> bool {
        let burial = self.membership.burials(now, self.clock.now()).into_iter().next();
        if let Some(burial) = burial {
            let (name, metadata) = (self.name_of(&burial.identity), self.metadata());
            let written = self.leases.write(&name, &burial.write, metadata).await;
            let now = self.now();
            match written {
                Written::Done(version) => {
                    let (record, identity) = (burial.write.record, &burial.identity);
                    tracing::info!(identity, "the Lease of another replica has expired");
                    self.membership.observe_member(identity, Some((record, version)), now);
                }
                Written::Conflict => self.probe(&burial.identity).await,
                Written::Unknown(error) => self.rest_from_others(&error.report()),
            }
            return true;
        }
        let unknown = self.membership.unknown_owners().first().map(|it| (*it).to_owned());
        if let Some(unknown) = unknown {
            self.probe(&unknown).await;
            self.others_at = self.now() + self.membership.own().times().retry_period;
            return true;
        }
        let remains = self.membership.remains(now).into_iter().next();
        if let Some(identity) = remains {
            if let Err(error) = self.leases.delete(&self.name_of(&identity)).await {
                self.rest_from_others(&error.report());
            }
            self.membership.observe_member(&identity, None, now);
            return true;
        }
        false
    }

    fn rest_from_others(&mut self, error: &str) {
        self.complain(error);
        self.others_at = self.now() + self.membership.own().times().retry_period;
    }

    /// Reads the Lease of another member.
    async fn probe(&mut self, identity: &str) {
        let sent_at = self.now();
        match self.leases.read(&self.name_of(identity)).await {
            Ok(Some(found)) => {
                let now = self.now();
                let found = Some((found.record, found.version));
                self.membership.observe_member(identity, found, now);
            }
            Ok(None) => {
                self.membership.observe_member(identity, None, sent_at);
                self.membership.observe_missing(identity, sent_at);
            }
            Err(error) => self.rest_from_others(&error.report()),
        }
    }

    async fn read_own(&mut self) {
        let name = self.own_name();
        let answer = self.leases.read(&name).await;
        let now = self.now();
        match answer {
            Ok(found) => {
                let found = found.map(|found| (found.record, found.version));
                self.membership.own().observe(found, now);
            }
            Err(error) => {
                self.complain(&error.report());
                self.membership.own().fail(false, now);
            }
        }
    }

    async fn write_own(&mut self, write: &Write) {
        let name = self.own_name();
        let sent_at = self.now();
        self.wall_sent_at = SystemTime::now();
        let written = self.leases.write(&name, write, self.metadata()).await;
        let now = self.now();
        match written {
            Written::Done(version) => {
                self.is_failing = false;
                self.membership.own().succeed(write, version, sent_at, now);
            }
            Written::Conflict => self.membership.own().fail(true, now),
            Written::Unknown(error) => {
                self.complain(&error.report());
                self.membership.own().fail(false, now);
            }
        }
    }

    async fn read_table(&mut self) {
        let answer = self.leases.read(&self.table_name()).await;
        self.table_read_at = self.now();
        match answer {
            Ok(found) => self.take_table(found.as_ref()),
            Err(error) => {
                self.complain(&error.report());
                self.membership.table_failed(false, self.now());
            }
        }
    }

    async fn write_table(&mut self, write: TableWrite) {
        let mut metadata = self.metadata();
        metadata["annotations"] = json!({TABLE_ANNOTATION: write.table.to_text()});
        let record = LeaseRecord {
            holder: self.membership.own().identity().to_owned(),
            duration: Some(self.membership.own().times().lease_duration),
            renewed: Some(self.clock.now()),
            transitions: write.table.revision,
            ..LeaseRecord::default()
        };
        let lease = Write { record, precondition: write.precondition.clone() };
        let written = self.leases.write(&self.table_name(), &lease, metadata).await;
        let now = self.now();
        match written {
            Written::Done(version) => {
                if let Some(since) = self.draining_since.take() {
                    self.handover = Some(since.elapsed());
                }
                self.membership.table_written(write, version, now);
            }
            Written::Conflict => self.membership.table_failed(true, now),
            Written::Unknown(error) => {
                self.complain(&error.report());
                self.membership.table_failed(false, now);
            }
        }
    }

    fn take_table(&mut self, found: Option<&Found>) {
        let now = self.now();
        let Some(found) = found else { return self.membership.observe_table(None, now) };
        let text = found.annotations.get(TABLE_ANNOTATION);
        match text.and_then(|text| Table::parse(text)) {
            Some(table) => {
                self.membership.observe_table(Some((table, found.version.clone())), now);
            }
            // Nobody acts by it, and nobody can know who did: to be deleted by hand.
            None => {
                self.complain("the table of shares cannot be read");
                self.membership.table_failed(false, now);
            }
        }
    }

    fn hear(&mut self, news: Vec<News>) {
        let now = self.now();
        let prefix = format!("{}-", self.group);
        let own = self.membership.own().identity().to_owned();
        for news in news {
            let (name, found) = match news {
                News::Found(found) => (found.name.clone(), Some(found)),
                News::Gone(name) => (name, None),
            };
            let Some(identity) = name.strip_prefix(&prefix) else { continue };
            if identity == TABLE_SUFFIX {
                self.take_table(found.as_ref());
                continue;
            }
            let found = found.map(|found| (found.record, found.version));
            if identity == own {
                self.membership.own().observe(found, now);
            } else {
                self.membership.observe_member(identity, found, now);
            }
        }
    }

    /// Failures in a row are told once.
    fn complain(&mut self, error: &str) {
        if !std::mem::replace(&mut self.is_failing, true) {
            let group = &self.group;
            tracing::warn!(group, error, "the Leases of the shares cannot be kept; trying again");
        }
    }

    /// Opens or closes the gate, and tells what we have.
    fn publish(&mut self) {
        let now = self.now();
        let Some((held, term)) = self.membership.held(now) else {
            if self.told.take().is_some() {
                self.reported = None;
                self.report(None);
            }
            self.handed_over.clear();
            return self.tenure.close();
        };
        let draining = self.membership.draining().clone();
        if draining.is_empty() {
            self.draining_since = None;
        } else {
            self.draining_since.get_or_insert_with(Instant::now);
        }
        let begun: BTreeSet<u32> = held.difference(&draining).copied().collect();
        self.note_hand_over(&held, &begun, &draining);
        self.report_news(&held, term);
        let is_news = self.told.as_ref().is_none_or(|(_, told)| *told != begun);
        if !is_news && self.told.as_ref().is_some_and(|(told, _)| *told == term) {
            return;
        }
        let ranges = self.membership.table().map(|table| table.ranges);
        let Some(ranges) = ranges else { return };
        let wall_until = self.wall_sent_at + self.membership.own().times().renew_deadline;
        self.revision += u64::from(is_news);
        let (held_now, revision) = (Arc::new(begun.clone()), self.revision);
        let share = Share::Ranges { ranges, held: held_now, revision };
        self.tenure.open(term.number, self.origin + term.until, wall_until, share);
        self.told = Some((term, begun));
    }

    /// Tells what we have, if that or the number of members has changed.
    fn report_news(&mut self, held: &BTreeSet<u32>, term: Term) {
        let members = self.membership.living(self.now()).len();
        let Some(ranges) = self.membership.table().map(|table| table.ranges) else { return };
        let known = self.reported.replace((held.clone(), members));
        if known != self.reported {
            self.report(Some((held.clone(), term, ranges)));
        }
    }

    /// Remembers what the reactor has to finish first. What it never had is drained already.
    fn note_hand_over(
        &mut self,
        held: &BTreeSet<u32>,
        begun: &BTreeSet<u32>,
        draining: &BTreeSet<u32>,
    ) {
        self.handed_over.retain(|range, _| held.contains(range) && !begun.contains(range));
        let former = self.told.as_ref().map(|(_, begun)| begun);
        for range in draining {
            if former.is_some_and(|former| former.contains(range)) {
                self.handed_over.insert(*range, self.revision + 1);
            } else if !self.handed_over.contains_key(range) {
                self.membership.drained(*range);
            }
        }
    }

    fn report(&mut self, held: Option<(BTreeSet<u32>, Term, Ranges)>) {
        let members = self.membership.living(self.now()).len();
        let mut status = LeadershipStatus {
            identity: self.membership.own().identity().to_owned(),
            members,
            handover: self.handover,
            ..LeadershipStatus::default()
        };
        if let Some((held, term, ranges)) = held {
            let (count, all) = (held.len(), ranges.count());
            tracing::info!(ranges = count, all, members, "the share of this replica has changed");
            (status.leads, status.term) = (true, Some(term.number));
            status.ranges = Some((held.into_iter().collect(), all));
        }
        self.board.update(|board| board.leadership = Some(status.clone()));
    }

    /// Gives everything up, so that the others take it at once.
    async fn leave(&mut self) {
        // Read and written at most twice: others do not touch a Lease that is held.
        for _ in 0..4 {
            let step = self.membership.leave(self.clock.now());
            self.tenure.close();
            match step {
                Some(Step::Read) => self.read_own().await,
                Some(Step::Write(write)) => self.write_own(&write).await,
                Some(Step::Wait(_)) | None => return,
            }
        }
    }
}
