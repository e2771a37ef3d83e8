//! Maintains this replica's Lease among those that share the objects, and its part of the table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kopf_core::election::{Step, Term, Times, Write};
use kopf_core::queue::Moment;
use kopf_core::shards::{Membership, Ranges, Table, TableStep, TableWrite};
use kopf_model::lease::LeaseRecord;
use kopf_model::shards::{GROUP_LABEL, TABLE_ANNOTATION};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Share;
use super::leases::{Found, LeaseChange, Written};
use super::replica::Replica;
use crate::reporting::status::LeadershipStatus;

/// The suffix of the name of the Lease that holds the table.
const TABLE_SUFFIX: &str = "shards";

/// This replica as a member.
pub(crate) struct Sharer {
    replica: Replica,
    /// The name of the group: the prefix of the names of its Leases.
    group: String,
    membership: Membership,
    table_read_at: Moment,
    /// Nothing is done about the Leases of others before this time.
    others_at: Moment,
    last_published: Option<(Term, BTreeSet<u32>)>,
    /// The last report: our ranges, and the number of members.
    reported: Option<(BTreeSet<u32>, usize)>,
    hand_over: HandOver,
    /// The number of members in the last event.
    announced: usize,
}

/// The ranges that are handed over to others.
#[derive(Default)]
struct HandOver {
    /// Counts the changes of our share.
    revision: u64,
    /// The ranges that were taken from the reactor, and by which revision.
    ranges: BTreeMap<u32, u64>,
    /// Since when ranges are being handed over.
    since: Option<Instant>,
    /// How long the last hand-over took.
    took: Option<Duration>,
}

impl Sharer {
    pub(crate) fn new(
        replica: Replica,
        group: String,
        identity: &str,
        times: Times,
        ranges: Ranges,
    ) -> Self {
        Self {
            replica,
            group,
            membership: Membership::new(identity, times, ranges),
            table_read_at: Moment::ZERO,
            others_at: Moment::ZERO,
            last_published: None,
            reported: None,
            hand_over: HandOver::default(),
            announced: 0,
        }
    }

    fn now(&self) -> Moment {
        self.replica.now()
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

    /// Runs until it must stop, and then releases everything.
    pub(crate) async fn run(mut self, mut leaving: oneshot::Receiver<()>) {
        let (group, namespace) = (self.group.clone(), self.replica.leases.namespace().to_owned());
        let identity = self.membership.own().identity().to_owned();
        tracing::info!(group, namespace, identity, "sharing the objects with other replicas");
        let mut lease_watch =
            self.replica.leases.watch_changes(Some(format!("{GROUP_LABEL}={group}")), None);
        let tenure = Arc::clone(&self.replica.tenure);
        loop {
            let drained = tenure.drained();
            let Some(until) = self.work().await else { continue };
            tokio::select! {
                _ = &mut leaving => break,
                changes = lease_watch.next() => self.process_changes(changes),
                () = drained => {}
                () = tokio::time::sleep_until(self.replica.origin + until) => {}
            }
        }
        drop(lease_watch);
        self.leave().await;
    }

    /// Processes one pending item; returns how long to wait if there is none.
    async fn work(&mut self) -> Option<Moment> {
        for (range, revision) in self.replica.tenure.take_drained() {
            // It may have become ours again since.
            if self.hand_over.ranges.get(&range).is_some_and(|it| *it <= revision) {
                self.membership.drained(range);
            }
        }
        let now = self.now();
        self.membership.review(now);
        self.publish();
        let retry_period = self.membership.own().times().retry_period;
        let until = match self.membership.own().step(now, self.replica.clock.now()) {
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
            // The watch may miss events, so the table is also read periodically.
            TableStep::Rest if now >= self.table_read_at + retry_period => self.read_table().await,
            TableStep::Rest => {
                let look_at = self.table_read_at + retry_period;
                // The ranges of a dead member must not wait until we look for other reasons.
                let expiry = self.membership.next_expiry().unwrap_or(Moment::MAX);
                let until = until.min(look_at).min(expiry.max(self.others_at));
                return Some(until.max(now + Duration::from_millis(1)));
            }
        }
        None
    }

    /// Ends the lives of members whose Leases have expired, and looks for unknown owners. Returns
    /// whether there was anything to do.
    async fn look_after_others(&mut self, now: Moment) -> bool {
        let expiration =
            self.membership.expirations(now, self.replica.clock.now()).into_iter().next();
        if let Some(expiration) = expiration {
            let (name, metadata) = (self.name_of(&expiration.identity), self.metadata());
            let written = self.replica.leases.write(&name, &expiration.write, metadata).await;
            let now = self.now();
            match written {
                Written::Done(version) => {
                    let (record, identity) = (expiration.write.record, &expiration.identity);
                    tracing::info!(identity, "the Lease of another replica has expired");
                    self.membership.observe_member(identity, Some((record, version)), now);
                }
                Written::Conflict => self.probe(&expiration.identity).await,
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
        let leftover = self.membership.leftovers(now).into_iter().next();
        if let Some(identity) = leftover {
            if let Err(error) = self.replica.leases.delete(&self.name_of(&identity)).await {
                self.rest_from_others(&error.report());
            }
            self.membership.observe_member(&identity, None, now);
            return true;
        }
        false
    }

    fn rest_from_others(&mut self, error: &str) {
        self.log_failure(error);
        self.others_at = self.now() + self.membership.own().times().retry_period;
    }

    /// Reads the Lease of another member.
    async fn probe(&mut self, identity: &str) {
        let sent_at = self.now();
        match self.replica.leases.read(&self.name_of(identity)).await {
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
        let answer = self.replica.leases.read(&name).await;
        let now = self.now();
        match answer {
            Ok(found) => {
                let found = found.map(|found| (found.record, found.version));
                self.membership.own().observe(found, now);
            }
            Err(error) => {
                self.log_failure(&error.report());
                self.membership.own().fail(false, now);
            }
        }
    }

    async fn write_own(&mut self, write: &Write) {
        let name = self.own_name();
        let sent_at = self.now();
        self.replica.note_sent();
        let written = self.replica.leases.write(&name, write, self.metadata()).await;
        let now = self.now();
        match written {
            Written::Done(version) => {
                self.replica.note_success();
                self.membership.own().succeed(write, version, sent_at, now);
            }
            Written::Conflict => self.membership.own().fail(true, now),
            Written::Unknown(error) => {
                self.log_failure(&error.report());
                self.membership.own().fail(false, now);
            }
        }
    }

    async fn read_table(&mut self) {
        let answer = self.replica.leases.read(&self.table_name()).await;
        self.table_read_at = self.now();
        match answer {
            Ok(found) => self.take_table(found.as_ref()),
            Err(error) => {
                self.log_failure(&error.report());
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
            renewed: Some(self.replica.clock.now()),
            transitions: write.table.revision,
            ..LeaseRecord::default()
        };
        let lease = Write { record, precondition: write.precondition.clone() };
        let written = self.replica.leases.write(&self.table_name(), &lease, metadata).await;
        let now = self.now();
        match written {
            Written::Done(version) => {
                if let Some(since) = self.hand_over.since.take() {
                    self.hand_over.took = Some(since.elapsed());
                }
                self.membership.table_written(write, version, now);
            }
            Written::Conflict => self.membership.table_failed(true, now),
            Written::Unknown(error) => {
                self.log_failure(&error.report());
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
            // No replica acts on it, and the owners are unknown: it must be deleted manually.
            None => {
                self.log_failure("the table of shares cannot be read");
                self.membership.table_failed(false, now);
            }
        }
    }

    fn process_changes(&mut self, changes: Vec<LeaseChange>) {
        let now = self.now();
        let prefix = format!("{}-", self.group);
        let own = self.membership.own().identity().to_owned();
        for change in changes {
            let (name, found) = match change {
                LeaseChange::Found(found) => (found.name.clone(), Some(found)),
                LeaseChange::Gone(name) => (name, None),
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

    /// Failures in a row are logged once.
    fn log_failure(&mut self, error: &str) {
        if self.replica.note_failure() {
            let group = &self.group;
            tracing::warn!(
                group,
                error,
                "could not read or renew the Leases of the shares; retrying"
            );
        }
    }

    /// Opens or closes the gate, and publishes our ranges.
    fn publish(&mut self) {
        let now = self.now();
        let Some((held, term)) = self.membership.held(now) else {
            if self.last_published.take().is_some() {
                self.reported = None;
                self.report(None);
            }
            self.hand_over.ranges.clear();
            return self.replica.tenure.close();
        };
        let draining = self.membership.draining().clone();
        if draining.is_empty() {
            self.hand_over.since = None;
        } else {
            self.hand_over.since.get_or_insert_with(Instant::now);
        }
        let begun: BTreeSet<u32> = held.difference(&draining).copied().collect();
        self.note_hand_over(&held, &begun, &draining);
        self.report_news(&held, term);
        let has_changed = self.last_published.as_ref().is_none_or(|(_, ranges)| *ranges != begun);
        if !has_changed && self.last_published.as_ref().is_some_and(|(known, _)| *known == term) {
            return;
        }
        let ranges = self.membership.table().map(|table| table.ranges);
        let Some(ranges) = ranges else { return };
        let deadline = self.membership.own().times().renew_deadline;
        self.hand_over.revision += u64::from(has_changed);
        let (held_now, revision) = (Arc::new(begun.clone()), self.hand_over.revision);
        let share = Share::Ranges { ranges, held: held_now, revision };
        self.replica.open_gate(term, deadline, share);
        self.last_published = Some((term, begun));
    }

    /// Reports our ranges, if they or the number of members have changed.
    fn report_news(&mut self, held: &BTreeSet<u32>, term: Term) {
        let members = self.membership.living(self.now()).len();
        let Some(ranges) = self.membership.table().map(|table| table.ranges) else { return };
        let known = self.reported.replace((held.clone(), members));
        if known != self.reported {
            self.report(Some((held.clone(), term, ranges)));
        }
    }

    /// Records what the reactor must finish first. Ranges that it never had are already drained.
    fn note_hand_over(
        &mut self,
        held: &BTreeSet<u32>,
        begun: &BTreeSet<u32>,
        draining: &BTreeSet<u32>,
    ) {
        self.hand_over.ranges.retain(|range, _| held.contains(range) && !begun.contains(range));
        let former = self.last_published.as_ref().map(|(_, begun)| begun);
        for range in draining {
            if former.is_some_and(|former| former.contains(range)) {
                self.hand_over.ranges.insert(*range, self.hand_over.revision + 1);
            } else if !self.hand_over.ranges.contains_key(range) {
                self.membership.drained(*range);
            }
        }
    }

    fn report(&mut self, held: Option<(BTreeSet<u32>, Term, Ranges)>) {
        let members = self.membership.living(self.now()).len();
        let mut status = LeadershipStatus {
            identity: self.membership.own().identity().to_owned(),
            members,
            handover: self.hand_over.took,
            ..LeadershipStatus::default()
        };
        if let Some((held, term, ranges)) = held {
            let (count, all) = (held.len(), ranges.count());
            tracing::info!(ranges = count, all, members, "the share of this replica has changed");
            if std::mem::replace(&mut self.announced, members) != members {
                let what = match members {
                    0 | 1 => "is the only member".to_owned(),
                    _ => format!("shares the objects among {members} members"),
                };
                self.replica.leases.announce(&self.table_name(), &status.identity, &what);
            }
            (status.leads, status.term) = (true, Some(term.number));
            status.ranges = Some((held.into_iter().collect(), all));
        }
        self.replica.publish(&status);
    }

    /// Releases everything, so that the others take it at once.
    async fn leave(&mut self) {
        // Read and written at most twice: others do not touch a held Lease.
        for _ in 0..4 {
            let step = self.membership.leave(self.replica.clock.now());
            self.replica.tenure.close();
            match step {
                Some(Step::Read) => self.read_own().await,
                Some(Step::Write(write)) => self.write_own(&write).await,
                Some(Step::Wait(_)) | None => return,
            }
        }
    }
}
