//! One replica's part in sharing the objects: it joins, takes ranges, hands them over, leaves.
//!
//! Every member has its own Lease ([`Election`]), and one table records the owner of each range. By
//! these rules, no range has two owners at once:
//!
//! 1. A member acts on a range only while the table assigns it to this very life of the member, and
//!    only until the end of its term by its own clock.
//! 2. Only the owner gives a range away while it lives. It stops acting *before* it sends the
//!    request, and does not start again before it has seen a table that the late request could not
//!    replace.
//! 3. A range of another member is taken only if that life has certainly ended: it released its
//!    Lease itself, or others replaced the Lease after it was not renewed for its whole duration
//!    ([`Expiration`]). The replaced version can no longer be renewed; the member starts a new
//!    life.
//! 4. Every write of a Lease or of the table replaces exactly the version that was seen before.

use std::collections::{BTreeMap, BTreeSet};

use kopf_model::Timestamp;
use kopf_model::lease::LeaseRecord;
use kopf_model::shards::{Member, Ranges, Table};

use super::assign;
use crate::election::{Election, Precondition, Seen, Step, Term, Times, Write, is_newer, released};
use crate::queue::Moment;

/// A Lease that was not renewed for this many durations after its end is deleted.
const LEFTOVERS_KEPT: u32 = 40;

/// Ends the life of a member whose Lease has expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiration {
    /// The member.
    pub identity: String,
    /// The write of its Lease.
    pub write: Write,
}

/// What to do about the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableStep {
    /// Read it.
    Read,
    /// Write it.
    Write(TableWrite),
    /// Do nothing.
    Rest,
}

/// A write of the table that takes effect only if nobody else has written in the meantime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableWrite {
    /// The new table.
    pub table: Table,
    /// The precondition of the write.
    pub precondition: Precondition,
}

/// What is known about the table.
#[derive(Clone, Debug)]
enum Known {
    /// Nothing yet.
    Unknown,
    /// It has been missing since this moment; and whether it existed before.
    Missing { since: Moment, was_there: bool },
    /// It was found.
    Found { table: Table, version: String },
}

/// One replica.
#[derive(Clone, Debug)]
pub struct Membership {
    election: Election,
    /// For the table, if there is none yet.
    wanted: Ranges,
    others: BTreeMap<String, Seen>,
    /// Owners without a Lease, and since when at the latest.
    absent: BTreeMap<String, Moment>,
    table: Known,
    /// Whether a write with an unknown result may have taken effect.
    is_uncertain: bool,
    next_table_attempt_at: Moment,
    /// The ranges that are being given away: no new work is started.
    draining: BTreeSet<u32>,
    /// Those of them without remaining work.
    drained: BTreeSet<u32>,
    /// The ranges that we requested to give away, with the revision that was to be replaced.
    sealed: BTreeMap<u32, u64>,
    is_leaving: bool,
}

impl Membership {
    /// Creates a replica that knows nothing yet. The identity must be unique to this process.
    #[must_use]
    pub fn new(identity: impl Into<String>, times: Times, wanted: Ranges) -> Self {
        Self {
            election: Election::new(identity, times),
            wanted,
            others: BTreeMap::new(),
            absent: BTreeMap::new(),
            table: Known::Unknown,
            is_uncertain: false,
            next_table_attempt_at: Moment::ZERO,
            draining: BTreeSet::new(),
            drained: BTreeSet::new(),
            sealed: BTreeMap::new(),
            is_leaving: false,
        }
    }

    /// Our own Lease.
    pub fn own(&mut self) -> &mut Election {
        &mut self.election
    }

    /// The table as known.
    #[must_use]
    pub fn table(&self) -> Option<&Table> {
        match &self.table {
            Known::Found { table, .. } => Some(table),
            _ => None,
        }
    }

    /// Our term, if we have one.
    #[must_use]
    pub fn term(&self, now: Moment) -> Option<Term> {
        self.election.term(now)
    }

    /// The ranges on which we may act, including those being given away, and until when.
    #[must_use]
    pub fn held(&self, now: Moment) -> Option<(BTreeSet<u32>, Term)> {
        let term = self.election.term(now)?;
        let me = Member { identity: self.election.identity().to_owned(), life: term.number };
        let table = self.table()?;
        let owned = (0_u32..).zip(&table.owners).filter(|(_, owner)| owner.as_ref() == Some(&me));
        let held = owned.map(|(range, _)| range).filter(|range| !self.sealed.contains_key(range));
        Some((held.collect(), term))
    }

    /// The ranges that are being given away: no new work may start, current work may finish.
    #[must_use]
    pub fn draining(&self) -> &BTreeSet<u32> {
        &self.draining
    }

    /// The members that are alive as far as known, including us.
    #[must_use]
    pub fn living(&self, now: Moment) -> Vec<Member> {
        let is_alive = |(identity, seen): &(&String, &Seen)| {
            seen.record.holder == **identity && now < self.expiry(seen)
        };
        let others = self.others.iter().filter(is_alive);
        let member = |identity: &str, life| Member { identity: identity.to_owned(), life };
        let mut living: Vec<Member> =
            others.map(|(identity, seen)| member(identity, seen.record.transitions)).collect();
        if let Some(term) = self.election.term(now).filter(|_| !self.is_leaving) {
            living.push(member(self.election.identity(), term.number));
        }
        living
    }

    fn expiry(&self, seen: &Seen) -> Moment {
        let duration = seen.record.duration.unwrap_or(self.election.times().lease_duration);
        seen.since.saturating_add(duration)
    }

    /// Processes the Lease of another member; `None` if it is gone.
    pub fn observe_member(
        &mut self,
        identity: &str,
        found: Option<(LeaseRecord, String)>,
        now: Moment,
    ) {
        if identity == self.election.identity() {
            return;
        }
        let Some((record, version)) = found else {
            self.others.remove(identity);
            return;
        };
        self.absent.remove(identity);
        let known = self.others.get(identity);
        if known.is_none_or(|known| is_newer(&version, &known.version)) {
            self.others.insert(identity.to_owned(), Seen { record, version, since: now });
        }
    }

    /// The known Leases of other members.
    pub fn others(&self) -> impl Iterator<Item = &str> {
        self.others.keys().map(String::as_str)
    }

    /// Processes the table with its version; `None` if there is none.
    pub fn observe_table(&mut self, found: Option<(Table, String)>, now: Moment) {
        let Some((table, version)) = found else {
            // Without a table, no range has an owner.
            if !matches!(self.table, Known::Missing { .. }) {
                let was_there = self.table().is_some();
                self.table = Known::Missing { since: now, was_there };
            }
            self.is_uncertain = false;
            return;
        };
        if self.table().is_some_and(|known| table.revision < known.revision) {
            return;
        }
        self.is_uncertain = false;
        self.sealed.retain(|_, revision| *revision >= table.revision);
        let is_named = |it: &str| table.owners.iter().flatten().any(|owner| owner.identity == it);
        self.absent.retain(|identity, _| is_named(identity));
        self.table = Known::Found { table, version };
    }

    /// Decides which ranges to give away. Must be called before the steps are requested.
    pub fn review(&mut self, now: Moment) {
        let Some((held, _)) = self.held(now) else {
            self.draining.clear();
            self.drained.clear();
            return;
        };
        let targets = self.targets(now);
        let is_ours = |range: &u32| {
            targets.get(*range as usize).is_some_and(|target| {
                target.as_ref().is_some_and(|it| it.identity == self.election.identity())
            })
        };
        self.draining =
            held.iter().copied().filter(|range| self.is_leaving || !is_ours(range)).collect();
        let sealed = &self.sealed;
        self.drained.retain(|range| self.draining.contains(range) || sealed.contains_key(range));
    }

    /// The owners whose Leases we have not seen. They must be read one by one, since a list or a
    /// watch that does not show them yet proves nothing.
    #[must_use]
    pub fn unknown_owners(&self) -> BTreeSet<&str> {
        let owners = self.table().into_iter().flat_map(|table| table.owners.iter().flatten());
        let names = owners.map(|owner| owner.identity.as_str());
        let is_unknown =
            |it: &&str| *it != self.election.identity() && !self.others.contains_key(*it);
        names.filter(is_unknown).collect()
    }

    /// Records that an unknown owner has no Lease, according to a read sent at this moment: the
    /// Lease was deleted, and its owner stops within the duration of the Lease.
    pub fn observe_missing(&mut self, identity: &str, sent_at: Moment) {
        self.absent.entry(identity.to_owned()).or_insert(sent_at);
    }

    fn targets(&self, now: Moment) -> Vec<Option<Member>> {
        let living = self.living(now);
        let count = self.table().map_or(self.wanted, |table| table.ranges).count();
        let names: Vec<&str> = living.iter().map(|member| member.identity.as_str()).collect();
        let member = |name: Option<&str>| {
            name.and_then(|name| living.iter().find(|member| member.identity == name).cloned())
        };
        assign(count, &names).into_iter().map(member).collect()
    }

    /// Records that no work is left on a range that is being given away.
    pub fn drained(&mut self, range: u32) {
        if self.draining.contains(&range) {
            self.drained.insert(range);
        }
    }

    /// The members whose lives must be ended, since their Leases have expired.
    #[must_use]
    pub fn expirations(&self, now: Moment, wall: Timestamp) -> Vec<Expiration> {
        let is_expired = |(identity, seen): &(&String, &Seen)| {
            seen.record.holder == **identity && now >= self.expiry(seen)
        };
        let expiration = |(identity, seen): (&String, &Seen)| Expiration {
            identity: identity.clone(),
            write: Write {
                record: released(&seen.record, wall),
                precondition: Precondition::Version(seen.version.clone()),
            },
        };
        let expired = self.others.iter().filter(is_expired);
        expired.filter(|_| !self.is_leaving).map(expiration).collect()
    }

    /// When the next Lease of another member expires, unless it is renewed.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Moment> {
        let is_held = |(identity, seen): &(&String, &Seen)| seen.record.holder == **identity;
        self.others.iter().filter(is_held).map(|(_, seen)| self.expiry(seen)).min()
    }

    /// The Leases that are no longer needed, with their versions: their lives ended long ago, and
    /// the table does not name them.
    #[must_use]
    pub fn leftovers(&self, now: Moment) -> Vec<String> {
        let Some(table) = self.table() else { return Vec::new() };
        let kept = self.election.times().lease_duration.saturating_mul(LEFTOVERS_KEPT);
        let is_named =
            |identity: &str| table.owners.iter().flatten().any(|owner| owner.identity == identity);
        let is_old = |(identity, seen): &(&String, &Seen)| {
            seen.record.holder != **identity
                && now >= seen.since.saturating_add(kept)
                && !is_named(identity)
        };
        self.others.iter().filter(is_old).map(|(identity, _)| identity.clone()).collect()
    }

    /// Whether the life of an owner has certainly ended.
    fn is_over(&self, owner: &Member, me: &Member, now: Moment) -> bool {
        if owner.identity == me.identity {
            return owner.life < me.life;
        }
        if let Some(seen) = self.others.get(&owner.identity) {
            // The known state may be older than this life; then it says nothing about it.
            let is_released = seen.record.holder != owner.identity;
            let life = seen.record.transitions;
            return life > owner.life || (life == owner.life && is_released);
        }
        let patience = self.election.times().lease_duration;
        let since = self.absent.get(&owner.identity);
        since.is_some_and(|since| now >= since.saturating_add(patience))
    }

    /// Returns what to do about the table now.
    pub fn table_step(&mut self, now: Moment) -> TableStep {
        let Some(term) = self.election.term(now) else { return TableStep::Rest };
        if now < self.next_table_attempt_at {
            return TableStep::Rest;
        }
        let me = Member { identity: self.election.identity().to_owned(), life: term.number };
        let (table, precondition) = match &self.table {
            Known::Unknown => return TableStep::Read,
            _ if self.is_uncertain => return TableStep::Read,
            Known::Missing { .. } if self.is_leaving => return TableStep::Rest,
            Known::Missing { since, was_there } => {
                let patience = self.election.times().lease_duration;
                if *was_there && now < since.saturating_add(patience) {
                    return TableStep::Rest;
                }
                (Table::empty(self.wanted), Precondition::Absent)
            }
            Known::Found { table, version } => {
                (table.clone(), Precondition::Version(version.clone()))
            }
        };
        let changed = self.changed(table.clone(), &me, now);
        let is_first = precondition == Precondition::Absent;
        let must_unseal = self.sealed.values().any(|revision| *revision >= table.revision);
        if changed.owners == table.owners && !is_first && !must_unseal {
            return TableStep::Rest;
        }
        for (range, (before, after)) in (0_u32..).zip(table.owners.iter().zip(&changed.owners)) {
            if before != after && before.as_ref() == Some(&me) {
                self.sealed.insert(range, table.revision);
            }
        }
        TableStep::Write(TableWrite {
            table: Table { revision: table.revision + 1, ..changed },
            precondition,
        })
    }

    /// The table with the ranges that we may give and take.
    fn changed(&self, mut table: Table, me: &Member, now: Moment) -> Table {
        let targets = self.targets(now);
        for (range, (owner, target)) in (0_u32..).zip(table.owners.iter_mut().zip(targets)) {
            let Some(target) = target else { continue };
            let is_given =
                owner.as_ref() == Some(me) && target != *me && self.drained.contains(&range);
            let is_taken = target == *me
                && owner.as_ref().is_none_or(|owner| owner != me && self.is_over(owner, me, now));
            if is_given || is_taken {
                *owner = Some(target);
            }
        }
        table
    }

    /// Processes a successful write of the table, which now has this version.
    pub fn table_written(&mut self, write: TableWrite, version: String, now: Moment) {
        self.observe_table(Some((write.table, version)), now);
    }

    /// Processes a failed read or write of the table, or one with an unknown result.
    pub fn table_failed(&mut self, is_conflict: bool, now: Moment) {
        self.is_uncertain = true;
        if !is_conflict {
            let pause = self.election.times().retry_period;
            self.next_table_attempt_at = now.saturating_add(pause);
        }
    }

    /// Starts to leave: no new work anywhere. [`Self::leave`] must follow.
    pub fn begin_to_leave(&mut self, now: Moment) {
        self.is_leaving = true;
        self.review(now);
    }

    /// Leaves, once no work is left: others may take all our ranges as soon as our Lease is
    /// released. Returns what to do about the Lease, as [`Election::leave`] does.
    pub fn leave(&mut self, wall: Timestamp) -> Option<Step> {
        self.is_leaving = true;
        self.election.leave(wall)
    }
}
