//! Leader election: one candidate's part in an election by a Lease, compatible with client-go.
//!
//! Pure: reads, writes and the clock belong to the caller. Safety rests on two facts. Every write
//! replaces exactly the version seen before, or fails. And a leader counts the time of its term
//! from *before* it sent the renewal, by its own monotonic clock, while the others count from after
//! they saw it, and for longer ([`Times`]). Wall clocks are written for users and never compared.
//! So no two candidates lead at once, as long as no clock runs faster than another by more than
//! `lease_duration / renew_deadline`.

use std::time::Duration;

use kopf_model::Timestamp;
use kopf_model::lease::LeaseRecord;

use crate::queue::Moment;

/// The duration of a released Lease, as client-go writes it.
const RELEASED_DURATION: Duration = Duration::from_secs(1);

/// The times of an election, named as in client-go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How long others wait after the last renewal that they saw.
    pub lease_duration: Duration,
    /// How long the leader continues after the last successful renewal.
    pub renew_deadline: Duration,
    /// The pause between attempts to acquire or to renew.
    pub retry_period: Duration,
}

/// Why times are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimesError {
    /// A leader would continue when others may start.
    #[error("the lease duration must be at least a second longer than the renew deadline")]
    DeadlineTooLong,
    /// A leader would give up before a second attempt.
    #[error("the renew deadline must be more than twice as long as the retry period")]
    RetriesTooRare,
    /// There would be no pauses at all.
    #[error("the retry period must not be zero")]
    NoPause,
}

/// The Lease as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its content.
    pub record: LeaseRecord,
    /// Its `resourceVersion`.
    pub version: String,
    /// When this version was first seen.
    pub since: Moment,
}

/// The right to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Incremented with every change of the leader.
    pub number: u64,
    /// The right ends at this moment, unless the Lease is renewed before.
    pub until: Moment,
}

/// What to do about the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read it.
    Read,
    /// Write it.
    Write(Write),
    /// Do nothing before this moment, unless the Lease changes.
    Wait(Moment),
}

/// A write that takes effect only if nobody else has written in the meantime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The new content of the Lease.
    pub record: LeaseRecord,
    /// The precondition of the write.
    pub precondition: Precondition,
}

/// The precondition of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// The Lease does not exist.
    Absent,
    /// The Lease has this `resourceVersion`.
    Version(String),
}

/// What is known about the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Knowledge {
    /// Nothing certain: a write may or may not have taken effect.
    Unknown,
    /// It has been missing since this moment.
    Missing { since: Moment },
    /// It was found.
    Found(Seen),
}

/// One candidate.
#[derive(Clone, Debug)]
pub struct Election {
    identity: String,
    times: Times,
    knowledge: Knowledge,
    /// The last Lease of another candidate that was seen; it may have been deleted since.
    rival: Option<Seen>,
    term: Option<Term>,
    /// The highest number of transitions seen, if the Lease was ever seen.
    transitions: Option<u64>,
    next_attempt_at: Moment,
    is_leaving: bool,
}

impl Times {
    /// The defaults of client-go: 15, 10 and 2 seconds.
    pub const DEFAULT: Self = Self {
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    };

    /// Checks whether an election with these times is safe and can proceed.
    ///
    /// # Errors
    /// Fails with the reason why they are invalid.
    pub fn check(&self) -> Result<(), TimesError> {
        if self.retry_period.is_zero() {
            return Err(TimesError::NoPause);
        }
        // The duration is stored in whole seconds.
        if self.lease_duration < self.renew_deadline.saturating_add(Duration::from_secs(1)) {
            return Err(TimesError::DeadlineTooLong);
        }
        if self.renew_deadline <= self.retry_period.saturating_mul(2) {
            return Err(TimesError::RetriesTooRare);
        }
        Ok(())
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Election {
    /// Creates a candidate that knows nothing yet. The identity must be unique to this process.
    #[must_use]
    pub fn new(identity: impl Into<String>, times: Times) -> Self {
        Self {
            identity: identity.into(),
            times,
            knowledge: Knowledge::Unknown,
            rival: None,
            term: None,
            transitions: None,
            next_attempt_at: Moment::ZERO,
            is_leaving: false,
        }
    }

    /// The identity of this candidate.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The times of the election.
    #[must_use]
    pub fn times(&self) -> Times {
        self.times
    }

    /// The holder of the Lease, as far as known.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        match &self.knowledge {
            Knowledge::Found(seen) => Some(&seen.record.holder).filter(|it| !it.is_empty()),
            _ => self.rival.as_ref().map(|seen| &seen.record.holder),
        }
        .map(String::as_str)
    }

    /// The right to act at this moment, if we have it.
    #[must_use]
    pub fn term(&self, now: Moment) -> Option<Term> {
        self.term.filter(|term| now < term.until)
    }

    /// Processes the result of a read or a watch: the Lease with its version, or its absence.
    pub fn observe(&mut self, found: Option<(LeaseRecord, String)>, now: Moment) {
        let Some((record, version)) = found else {
            if !matches!(self.knowledge, Knowledge::Missing { .. }) {
                self.knowledge = Knowledge::Missing { since: now };
            }
            return;
        };
        // Watches may lag behind and deliver versions older than our own writes.
        if matches!(&self.knowledge, Knowledge::Found(seen) if !is_newer(&version, &seen.version)) {
            return;
        }
        self.transitions = self.transitions.max(Some(record.transitions));
        let is_rival = !record.holder.is_empty() && record.holder != self.identity;
        let known = self.rival.take().filter(|it| is_rival && it.version == version);
        // The same version may be read again after a failed write.
        let since = known.map_or(now, |it| it.since);
        let seen = Seen { record, version, since };
        self.rival = is_rival.then(|| seen.clone());
        if is_rival {
            self.term = None;
        }
        self.knowledge = Knowledge::Found(seen);
    }

    /// Returns what to do now. `wall` is the time shown to users in the Lease.
    #[must_use]
    pub fn step(&self, now: Moment, wall: Timestamp) -> Step {
        if self.is_leaving {
            return Step::Wait(Moment::MAX);
        }
        let is_pausing = now < self.next_attempt_at;
        match &self.knowledge {
            _ if is_pausing && self.term.is_some() => Step::Wait(self.next_attempt_at),
            Knowledge::Unknown if is_pausing => Step::Wait(self.next_attempt_at),
            Knowledge::Unknown => Step::Read,
            Knowledge::Missing { since } => {
                // The holder of a deleted Lease may still act.
                let rivalry = self.rival.as_ref().map(|rival| self.duration_of(&rival.record));
                let free_at = rivalry.map_or(now, |duration| since.saturating_add(duration));
                if now < free_at {
                    return Step::Wait(free_at);
                }
                let record = self.claim(None, wall);
                Step::Write(Write { record, precondition: Precondition::Absent })
            }
            Knowledge::Found(seen) => {
                let free_at = self.free_at(seen);
                if now < free_at {
                    return Step::Wait(free_at);
                }
                let precondition = Precondition::Version(seen.version.clone());
                let record = self.claim(Some(&seen.record), wall);
                Step::Write(Write { record, precondition })
            }
        }
    }

    /// When a Lease may be taken; at once if it is ours or has no holder.
    fn free_at(&self, seen: &Seen) -> Moment {
        if seen.record.holder.is_empty() || seen.record.holder == self.identity {
            return Moment::ZERO;
        }
        seen.since.saturating_add(self.duration_of(&seen.record))
    }

    fn duration_of(&self, record: &LeaseRecord) -> Duration {
        record.duration.unwrap_or(self.times.lease_duration)
    }

    /// The Lease with us as its holder.
    fn claim(&self, current: Option<&LeaseRecord>, wall: Timestamp) -> LeaseRecord {
        let ours = current.filter(|record| record.holder == self.identity);
        // The numbers continue after those of a deleted Lease.
        let next = self.transitions.map_or(0, |known| known.saturating_add(1));
        let transitions = ours.map_or(next, |record| record.transitions);
        LeaseRecord {
            holder: self.identity.clone(),
            duration: Some(self.times.lease_duration),
            acquired: ours.and_then(|record| record.acquired).or(Some(wall)),
            renewed: Some(wall),
            transitions,
        }
    }

    /// Processes a successful write that was sent at this moment; the Lease now has this version.
    pub fn succeed(&mut self, write: &Write, version: String, sent_at: Moment, now: Moment) {
        let record = write.record.clone();
        self.transitions = self.transitions.max(Some(record.transitions));
        if record.holder == self.identity && !self.is_leaving {
            let until = sent_at.saturating_add(self.times.renew_deadline);
            self.term = Some(Term { number: record.transitions, until });
            self.next_attempt_at = sent_at.saturating_add(self.times.retry_period);
        }
        self.rival = None;
        self.knowledge = Knowledge::Found(Seen { record, version, since: now });
    }

    /// Processes a failed read or write, or one with an unknown result. A conflict proves that our
    /// write did not take effect, so the Lease is read again at once; after other failures there is
    /// a pause.
    pub fn fail(&mut self, is_conflict: bool, now: Moment) {
        self.knowledge = Knowledge::Unknown;
        let pause = if is_conflict { Duration::ZERO } else { self.times.retry_period };
        self.next_attempt_at = now.saturating_add(pause);
    }

    /// Ends our candidacy: from now on there is no right to act, even before others learn of it.
    /// Returns a write if we hold the Lease as far as known, or a read if that is uncertain. Must
    /// be called again after a read.
    pub fn leave(&mut self, wall: Timestamp) -> Option<Step> {
        self.is_leaving = true;
        self.term = None;
        match &self.knowledge {
            Knowledge::Unknown => Some(Step::Read),
            Knowledge::Found(seen) if seen.record.holder == self.identity => {
                let precondition = Precondition::Version(seen.version.clone());
                Some(Step::Write(Write { record: released(&seen.record, wall), precondition }))
            }
            _ => None,
        }
    }
}

/// Whether a version is newer than another, as far as known: versions that are not numbers count as
/// newer if they differ.
#[must_use]
pub fn is_newer(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version > than,
        _ => version != than,
    }
}

/// The same Lease without a holder: any candidate may take it at once.
#[must_use]
pub fn released(record: &LeaseRecord, wall: Timestamp) -> LeaseRecord {
    LeaseRecord {
        holder: String::new(),
        duration: Some(RELEASED_DURATION),
        acquired: Some(wall),
        renewed: Some(wall),
        transitions: record.transitions,
    }
}

#[cfg(test)]
mod tests;
