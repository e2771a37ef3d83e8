//! Who leads: one candidate's part in an election by a Lease, compatible with client-go's.
//!
//! Pure: reads, writes and the clock are the caller's. All safety rests on two facts. Every write
//! replaces exactly the version that was seen before, or fails. And a leader counts the time of its
//! term from *before* it sent the renewal, by its own monotonic clock, while the others count from
//! after they saw it, and for longer ([`Times`]). Wall clocks are written for people, and never
//! compared. So no two candidates lead at once, as long as no clock runs faster than another one by
//! more than `lease_duration / renew_deadline`.

use std::time::Duration;

use kopf_model::Timestamp;
use kopf_model::lease::LeaseRecord;

use crate::queue::Moment;

/// How long a released Lease is said to be held, as client-go writes it.
const RELEASED_DURATION: Duration = Duration::from_secs(1);

/// The times of an election, as client-go names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How long others wait after the last renewal that they saw.
    pub lease_duration: Duration,
    /// How long the leader goes on after the last renewal that succeeded.
    pub renew_deadline: Duration,
    /// The pause between attempts to acquire or to renew.
    pub retry_period: Duration,
}

/// Why times are of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimesError {
    /// A leader would go on when others may begin.
    #[error("the lease duration must be at least a second longer than the renew deadline")]
    DeadlineTooLong,
    /// A leader would give up before a second attempt.
    #[error("the renew deadline must be more than twice as long as the retry period")]
    RetriesTooRare,
    /// Nothing would ever be awaited.
    #[error("the retry period must not be zero")]
    NoPause,
}

/// What was seen of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// What it says.
    pub record: LeaseRecord,
    /// Its `resourceVersion`.
    pub version: String,
    /// Since when we know this version.
    pub since: Moment,
}

/// The right to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Grows with every change of the leader.
    pub number: u64,
    /// The right ends at this moment, unless the Lease is renewed before.
    pub until: Moment,
}

/// What is to be done about the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read it.
    Read,
    /// Write it.
    Write(Write),
    /// Nothing before this moment, unless the Lease changes.
    Wait(Moment),
}

/// A write that takes effect only if nobody else was faster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// What the Lease is to say.
    pub record: LeaseRecord,
    /// What must be true of it.
    pub precondition: Precondition,
}

/// What must be true of a Lease when it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// It does not exist.
    Absent,
    /// It has this `resourceVersion`.
    Version(String),
}

/// What is known of the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Knowledge {
    /// Nothing, or nothing that is certain: a write may or may not have taken effect.
    Unknown,
    /// It was not there, since this moment.
    Missing { since: Moment },
    /// It was there.
    Found(Seen),
}

/// One candidate.
#[derive(Clone, Debug)]
pub struct Election {
    identity: String,
    times: Times,
    knowledge: Knowledge,
    /// The last Lease of somebody else that was seen; it may have been deleted since.
    rival: Option<Seen>,
    term: Option<Term>,
    /// The highest number of transitions that was seen, if the Lease was ever seen.
    transitions: Option<u64>,
    next_attempt_at: Moment,
    is_leaving: bool,
}

impl Times {
    /// client-go's: 15, 10 and 2 seconds.
    pub const DEFAULT: Self = Self {
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
    };

    /// Whether an election with these times is safe and can go on.
    ///
    /// # Errors
    /// Says what is wrong with them.
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
    /// A candidate that knows nothing yet. The identity must be unique to this process.
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

    /// Who we are.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The times of the election.
    #[must_use]
    pub fn times(&self) -> Times {
        self.times
    }

    /// Who holds the Lease, as far as we know.
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

    /// Takes in what a read or a watch has told: the Lease with its version, or that there is none.
    pub fn observe(&mut self, found: Option<(LeaseRecord, String)>, now: Moment) {
        let Some((record, version)) = found else {
            if !matches!(self.knowledge, Knowledge::Missing { .. }) {
                self.knowledge = Knowledge::Missing { since: now };
            }
            return;
        };
        // Watches may be late, and tell what was before our own writes.
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

    /// What is to be done now. `wall` is what people read in the Lease.
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
                // Somebody may still act by a Lease that was deleted.
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

    /// When a Lease may be taken; at once if it is ours or nobody's.
    fn free_at(&self, seen: &Seen) -> Moment {
        if seen.record.holder.is_empty() || seen.record.holder == self.identity {
            return Moment::ZERO;
        }
        seen.since.saturating_add(self.duration_of(&seen.record))
    }

    fn duration_of(&self, record: &LeaseRecord) -> Duration {
        record.duration.unwrap_or(self.times.lease_duration)
    }

    /// The Lease as it is when we hold it.
    fn claim(&self, current: Option<&LeaseRecord>, wall: Timestamp) -> LeaseRecord {
        let ours = current.filter(|record| record.holder == self.identity);
        // The numbers go on where a deleted Lease ended.
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

    /// A write has succeeded, and was sent at this moment; the Lease has this version now.
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

    /// A read or a write has failed, or its answer is unknown. A conflict is known to be none of
    /// ours, so the Lease is read again at once; everything else is tried again after a pause.
    pub fn fail(&mut self, is_conflict: bool, now: Moment) {
        self.knowledge = Knowledge::Unknown;
        let pause = if is_conflict { Duration::ZERO } else { self.times.retry_period };
        self.next_attempt_at = now.saturating_add(pause);
    }

    /// Ends our candidacy: there is no right to act from now on, before anybody hears of it.
    /// Returns what is to be written, if we hold the Lease as far as we know; or a read, if that is
    /// not certain. To be asked again after a read.
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

/// Whether a version came after another one, as far as that is known: versions that are not numbers
/// are newer if they differ.
#[must_use]
pub fn is_newer(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version > than,
        _ => version != than,
    }
}

/// The same Lease without a holder: anybody may take it at once.
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
