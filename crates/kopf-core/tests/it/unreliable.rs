//! A server, a network and clocks that fail in every allowed way, determined by a seed.
//!
//! Requests and responses are lost, late and duplicated; processes freeze and wake up late; clocks
//! run at different speeds. Only two things hold: the server replaces exactly the version it is
//! asked to replace, and no clock is faster than another by more than the bound.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use kopf_core::election::Precondition;
use kopf_core::queue::Moment;

/// Real time, which no process can see.
pub(crate) type Real = Duration;

/// A request to the server.
#[derive(Clone, Debug)]
pub(crate) enum Request<C> {
    Get(String),
    List,
    Put { name: String, content: C, precondition: Precondition },
}

/// A response of the server.
#[derive(Clone, Debug)]
pub(crate) enum Answer<C> {
    Found(Option<(C, String)>),
    Listed(Vec<(String, C, String)>),
    Written(String),
    Conflict,
}

/// An event of the simulation.
#[derive(Clone, Debug)]
pub(crate) enum Event<C> {
    /// A process checks what it has to do.
    Tick { process: usize },
    /// A request reaches the server.
    Arrival { process: usize, id: u64, request: Request<C> },
    /// A response reaches its process.
    Reply { process: usize, id: u64, answer: Answer<C> },
    /// A watch notifies a process of a change.
    News { process: usize, name: String, content: C, version: String },
    /// A process fails, or is asked to stop.
    Fault,
}

/// The limits of the faults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    /// The maximum deviation of clocks, in percent.
    pub(crate) drift: u64,
    /// How many of a hundred messages are lost, late, duplicated.
    pub(crate) lost: u32,
    pub(crate) late: u32,
    pub(crate) doubled: u32,
    /// The maximum delay.
    pub(crate) late_max: Duration,
}

impl Faults {
    pub(crate) const MANY: Self =
        Self { drift: 18, lost: 10, late: 10, doubled: 10, late_max: Duration::from_secs(40) };
    pub(crate) const NONE: Self =
        Self { drift: 18, lost: 0, late: 0, doubled: 0, late_max: Duration::ZERO };
}

struct Entry<C> {
    at: Real,
    order: u64,
    event: Event<C>,
}

/// The server and its environment.
pub(crate) struct Environment<C> {
    pub(crate) rng: fastrand::Rng,
    pub(crate) now: Real,
    pub(crate) faults: Faults,
    objects: BTreeMap<String, (C, u64)>,
    version: u64,
    events: BinaryHeap<Reverse<Entry<C>>>,
    order: u64,
    clocks: Vec<Clock>,
    /// Processes that are frozen, or disconnected from the server, until a time.
    frozen: BTreeMap<usize, Real>,
    cut_off: BTreeMap<usize, Real>,
}

/// The monotonic clock of a process.
#[derive(Clone, Copy)]
struct Clock {
    origin: Moment,
    /// Its speed in percent.
    speed: u64,
}

impl<C: Clone> Environment<C> {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        Self {
            rng: fastrand::Rng::with_seed(seed),
            now: Real::ZERO,
            faults,
            objects: BTreeMap::new(),
            version: 0,
            events: BinaryHeap::new(),
            order: 0,
            clocks: Vec::new(),
            frozen: BTreeMap::new(),
            cut_off: BTreeMap::new(),
        }
    }

    /// Adds a process with its own clock.
    pub(crate) fn add_process(&mut self) -> usize {
        let drift = self.faults.drift;
        let speed = self.rng.u64(100 - drift..=100 + drift);
        let origin = Duration::from_secs(self.rng.u64(0..1_000_000));
        self.clocks.push(Clock { origin, speed });
        self.clocks.len() - 1
    }

    /// The time of a process's clock, even if it is frozen.
    pub(crate) fn local(&self, process: usize) -> Moment {
        let clock = self.clocks[process];
        clock.origin + self.now * u32::try_from(clock.speed).unwrap() / 100
    }

    pub(crate) fn freeze(&mut self, process: usize, duration: Duration) {
        self.frozen.insert(process, self.now + duration);
    }

    pub(crate) fn cut_off(&mut self, process: usize, duration: Duration) {
        self.cut_off.insert(process, self.now + duration);
    }

    /// No further faults occur; messages in transit may still be late.
    pub(crate) fn stop_faults(&mut self) {
        self.faults = Faults::NONE;
        let now = self.now;
        for until in self.frozen.values_mut().chain(self.cut_off.values_mut()) {
            *until = now;
        }
    }

    pub(crate) fn schedule(&mut self, wait: Duration, event: Event<C>) {
        let (at, order) = (self.now + wait, self.order);
        self.order += 1;
        self.events.push(Reverse(Entry { at, order, event }));
    }

    /// Sends a request; it may be lost, late, or duplicated.
    pub(crate) fn send(&mut self, process: usize, id: u64, request: &Request<C>) {
        self.transmit(process, |_| Event::Arrival { process, id, request: request.clone() });
    }

    fn transmit(&mut self, process: usize, event: impl Fn(&mut Self) -> Event<C>) {
        let copies = 1 + u32::from(self.rng.u32(0..100) < self.faults.doubled);
        for _ in 0..copies {
            let is_cut_off = self.cut_off.get(&process).is_some_and(|until| self.now < *until);
            if is_cut_off || self.rng.u32(0..100) < self.faults.lost {
                continue;
            }
            let is_late = self.rng.u32(0..100) < self.faults.late;
            let delay_max = if is_late { self.faults.late_max } else { Duration::from_millis(80) };
            let delay = Duration::from_micros(self.rng.u64(100..=delay_max.as_micros() as u64));
            let event = event(self);
            self.schedule(delay, event);
        }
    }

    /// The next event that concerns processes; the server's part is done here.
    pub(crate) fn next(&mut self) -> Event<C> {
        loop {
            let Reverse(Entry { at, event, .. }) = self.events.pop().expect("ticks never end");
            self.now = self.now.max(at);
            let process = match &event {
                Event::Arrival { process, id, request } => {
                    self.serve(*process, *id, request.clone());
                    continue;
                }
                Event::Fault => return event,
                Event::Tick { process }
                | Event::Reply { process, .. }
                | Event::News { process, .. } => *process,
            };
            match self.frozen.get(&process).copied() {
                // It is processed when the process wakes up, before or after other waiting events.
                Some(until) if self.now < until => {
                    let wait = until - self.now + Duration::from_micros(self.rng.u64(0..1000));
                    self.schedule(wait, event);
                }
                _ => return event,
            }
        }
    }

    fn serve(&mut self, process: usize, id: u64, request: Request<C>) {
        let answer = match request {
            Request::Get(name) => {
                let found = self.objects.get(&name);
                Answer::Found(
                    found.map(|(content, version)| (content.clone(), version.to_string())),
                )
            }
            Request::List => {
                let item = |(name, (content, version)): (&String, &(C, u64))| {
                    (name.clone(), content.clone(), version.to_string())
                };
                Answer::Listed(self.objects.iter().map(item).collect())
            }
            Request::Put { name, content, precondition } => self.put(name, content, &precondition),
        };
        self.transmit(process, |_| Event::Reply { process, id, answer: answer.clone() });
    }

    fn put(&mut self, name: String, content: C, precondition: &Precondition) -> Answer<C> {
        let current = self.objects.get(&name).map(|(_, version)| version.to_string());
        let holds = match precondition {
            Precondition::Absent => current.is_none(),
            Precondition::Version(version) => current.as_ref() == Some(version),
        };
        if !holds {
            return Answer::Conflict;
        }
        self.version += 1;
        let version = self.version.to_string();
        self.objects.insert(name.clone(), (content.clone(), self.version));
        for process in 0..self.clocks.len() {
            if self.rng.bool() {
                let (name, content, version) = (name.clone(), content.clone(), version.clone());
                self.transmit(process, |_| Event::News {
                    process,
                    name: name.clone(),
                    content: content.clone(),
                    version: version.clone(),
                });
            }
        }
        Answer::Written(version)
    }
}

impl<C> PartialEq for Entry<C> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl<C> Eq for Entry<C> {}

impl<C> PartialOrd for Entry<C> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<C> Ord for Entry<C> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// How many histories are tried; `MODEL_SEEDS` sets another number, `MODEL_SEED` a single one.
pub(crate) fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("MODEL_SEEDS").unwrap_or(default),
    }
}
