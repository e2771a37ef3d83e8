//! The schedule of a chaos run, as a pure function of the seed.
//!
//! Defines the mix of edits and faults. Edits have fixed times; faults follow one another, since
//! their duration depends on the server. The same seed gives the same schedule to every operator.

use std::time::Duration;

/// Colours of objects; the field handler fails for the first one.
const COLORS: [&str; 4] = ["red", "green", "blue", "white"];
/// Values of objects; few, so that they repeat.
const VALUES: std::ops::Range<i64> = 0..30;
/// Runs of at least this length also have faults that take more than a minute.
const LONG_RUN: Duration = Duration::from_mins(4);
/// Pauses between two faults, in milliseconds.
const FAULT_PAUSE_MS: std::ops::Range<u64> = 1000..5000;
const FAULT_PAUSE_SHORT_RUN_MS: std::ops::Range<u64> = 500..2000;
/// The operator is killed only in this part of the run, so that the last process lives long enough
/// for its memory to be compared.
pub(super) const KILLS_UNTIL: f64 = 0.75;

/// The size of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) seed: u64,
    pub(super) length: Duration,
    pub(super) edits_per_second: f64,
    /// How many objects there are at most.
    pub(super) slots: usize,
}

/// All edits and faults.
#[derive(Debug, PartialEq)]
pub(super) struct Schedule {
    pub(super) edits: Vec<Planned>,
    pub(super) faults: Vec<(Duration, Fault)>,
    /// When the definition is deleted and created again.
    pub(super) definitions: Vec<(Duration, Definition)>,
}

/// One edit of one object and its time since the start.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Planned {
    pub(super) at: Duration,
    pub(super) slot: usize,
    pub(super) edit: Edit,
}

/// The edit of an object; a nonexistent object is created instead.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Edit {
    Value(i64),
    /// Increments the value; `Back` reverts it.
    Step,
    Back,
    Several {
        value: i64,
        color: &'static str,
        note: u32,
    },
    Color(Option<&'static str>),
    Note(u32),
    Tier(Option<&'static str>),
    Delete,
    /// Deletes or changes the child of the object.
    Drift {
        delete: bool,
    },
}

/// A fault.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    /// Kills the process with `kill -9` and starts a new one after a while.
    KillOperator {
        down: Duration,
    },
    /// Stops the process with SIGTERM and starts a new one after a while.
    StopOperator {
        down: Duration,
    },
    FreezeOperator(Duration),
    KillServer {
        down: Duration,
    },
    FreezeServer(Duration),
    /// The operator resumes its watches from a version that the server no longer has.
    Expire,
    /// All connections of the operator are closed, several times.
    Cut {
        times: u32,
    },
    /// Nothing more arrives on the open connections of the operator, without an error.
    Silence(Duration),
    /// A new token is issued before the old one is revoked.
    RotateToken,
    /// The token is revoked, and a new one is issued later.
    RevokeToken {
        gap: Duration,
    },
}

/// The circumstances in which the definition is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Definition {
    /// The operator is running.
    Running,
    /// The operator is started while the definition is being deleted.
    OperatorDown,
}

impl Fault {
    pub(super) fn is_about_the_operator_process(&self) -> bool {
        matches!(self, Self::KillOperator { .. } | Self::StopOperator { .. })
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::KillOperator { .. } => "operator killed",
            Self::StopOperator { .. } => "operator stopped",
            Self::FreezeOperator(_) => "operator frozen",
            Self::KillServer { .. } => "server killed",
            Self::FreezeServer(_) => "server frozen",
            Self::Expire => "versions expired",
            Self::Cut { .. } => "connections cut",
            Self::Silence(_) => "connections silent",
            Self::RotateToken => "token rotated",
            Self::RevokeToken { .. } => "token revoked",
        }
    }
}

impl Schedule {
    pub(super) fn new(size: Size) -> Self {
        let mut random = fastrand::Rng::with_seed(size.seed);
        Self {
            edits: edits(size, &mut random.fork()),
            faults: faults(size, &mut random.fork()),
            definitions: definitions(size),
        }
    }
}

fn edits(size: Size, random: &mut fastrand::Rng) -> Vec<Planned> {
    let mut edits = Vec::new();
    let mut at = 0.0;
    while at < size.length.as_secs_f64() {
        // Between zero and twice the average pause.
        at += random.f64() * 2.0 / size.edits_per_second;
        let slot = random.usize(..size.slots);
        let mut push = |delay: f64, edit| {
            let at = Duration::from_secs_f64(at + delay);
            edits.push(Planned { at, slot, edit });
        };
        match random.u32(..100) {
            0..25 => push(0.0, Edit::Value(random.i64(VALUES))),
            25..45 => {
                push(0.0, Edit::Step);
                push(0.1 + random.f64() * 2.0, Edit::Back);
            }
            45..60 => {
                let color = COLORS[random.usize(..COLORS.len())];
                let (value, note) = (random.i64(VALUES), random.u32(..1000));
                push(0.0, Edit::Several { value, color, note });
            }
            60..72 => push(0.0, Edit::Color(Some(COLORS[random.usize(..COLORS.len())]))),
            72..75 => push(0.0, Edit::Color(None)),
            75..80 => push(0.0, Edit::Note(random.u32(..1000))),
            80..88 => {
                push(0.0, Edit::Tier([Some("gold"), Some("silver"), None][random.usize(..3)]))
            }
            88..95 => push(0.0, Edit::Delete),
            _ => push(0.0, Edit::Drift { delete: random.bool() }),
        }
    }
    edits.sort_by_key(|planned| planned.at);
    edits
}

fn faults(size: Size, random: &mut fastrand::Rng) -> Vec<(Duration, Fault)> {
    let is_long = size.length >= LONG_RUN;
    let pauses = if is_long { FAULT_PAUSE_MS } else { FAULT_PAUSE_SHORT_RUN_MS };
    // The pauses alone would fill the time, so the run ends before the list does.
    let count = size.length.as_millis() / u128::from(pauses.start);
    let mut deck = Vec::new();
    (0..count.max(1))
        .map(|_| {
            if deck.is_empty() {
                // Each kind occurs once before any repeats.
                deck = kinds(size.length, random);
                random.shuffle(&mut deck);
            }
            let pause = Duration::from_millis(random.u64(pauses.clone()));
            (pause, deck.pop().unwrap_or(Fault::Expire))
        })
        .collect()
}

fn kinds(length: Duration, random: &mut fastrand::Rng) -> Vec<Fault> {
    let is_long = length >= LONG_RUN;
    let mut seconds = |short: std::ops::Range<f64>, long: std::ops::Range<f64>| {
        let range = if is_long { long } else { short };
        Duration::from_secs_f64(range.start + random.f64() * (range.end - range.start))
    };
    let mut kinds = vec![
        Fault::KillOperator { down: seconds(0.0..2.0, 0.0..3.0) },
        Fault::KillOperator { down: seconds(2.0..5.0, 5.0..20.0) },
        Fault::StopOperator { down: seconds(0.0..3.0, 0.0..10.0) },
        Fault::FreezeOperator(seconds(1.0..4.0, 2.0..15.0)),
        Fault::KillServer { down: seconds(0.0..1.0, 0.0..5.0) },
        Fault::FreezeServer(seconds(1.0..4.0, 5.0..40.0)),
        Fault::Expire,
        Fault::Cut { times: 3 },
        Fault::RotateToken,
        Fault::RevokeToken { gap: seconds(1.0..4.0, 5.0..20.0) },
    ];
    if is_long {
        kinds.push(Fault::Silence(seconds(10.0..20.0, 20.0..80.0)));
    }
    kinds
}

/// One in a short run, and one about every four minutes in a long one.
fn definitions(size: Size) -> Vec<(Duration, Definition)> {
    let minutes = size.length.as_secs() / 60;
    let count = u32::try_from(minutes / 4).unwrap_or(u32::MAX).max(1);
    let of =
        |index: u32| if index % 3 == 2 { Definition::OperatorDown } else { Definition::Running };
    // The last part of the run is left to the objects that are judged.
    (0..count)
        .map(|index| (size.length.mul_f64(0.8) * (index + 1) / (count + 1), of(index)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(seed: u64, minutes: u64) -> Size {
        Size { seed, length: Duration::from_mins(minutes), edits_per_second: 2.0, slots: 20 }
    }

    #[test]
    fn the_seed_decides_everything() {
        assert_eq!(Schedule::new(size(7, 5)), Schedule::new(size(7, 5)));
        assert_ne!(Schedule::new(size(7, 5)), Schedule::new(size(8, 5)));
    }

    #[test]
    fn half_an_hour_has_enough_edits_and_definitions() {
        let schedule = Schedule::new(size(1, 30));
        assert!(schedule.edits.len() > 3000, "{}", schedule.edits.len());
        assert!(schedule.definitions.len() >= 6, "{:?}", schedule.definitions);
    }

    #[test]
    fn edits_are_in_the_order_of_time_and_values_come_back_after_a_step() {
        let edits = Schedule::new(size(1, 5)).edits;
        assert!(edits.is_sorted_by_key(|planned| planned.at));
        let count = |edit: &Edit| edits.iter().filter(|planned| planned.edit == *edit).count();
        assert_eq!(count(&Edit::Step), count(&Edit::Back));
    }

    #[test]
    fn every_kind_of_fault_comes_before_one_comes_again() {
        let schedule = Schedule::new(size(1, 5));
        let first: std::collections::BTreeSet<&str> =
            schedule.faults.iter().take(11).map(|(_, fault)| fault.name()).collect();
        assert_eq!(first.len(), 10, "{first:?}");
    }
}
