//! Replicas that share the objects, under every fault of [`unreliable`](crate::unreliable): never
//! two owners of a range, and always an owner soon.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kopf_core::election::{Step, Times, Write};
use kopf_core::queue::Moment;
use kopf_core::shards::{Membership, Ranges, ShardField, Table, TableStep, TableWrite};
use kopf_model::Timestamp;
use kopf_model::lease::LeaseRecord;

use crate::unreliable::{Answer, Environment, Event, Faults, Real, Request, seeds};

const WALL: Timestamp = Timestamp::UNIX_EPOCH;
const TABLE: &str = "table";
const RANGES: u32 = 8;
/// The timeout of a request.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
enum Content {
    Lease(LeaseRecord),
    Table(Table),
}

/// The purpose of a request.
#[derive(Clone, Debug)]
enum Purpose {
    Own(Option<Write>),
    Poll,
    Expiration(String, Write),
    Probe(String),
    Table(Option<TableWrite>),
}

struct Replica {
    membership: Membership,
    /// At most one request of each kind: its number, its time and its purpose.
    pending: BTreeMap<&'static str, (u64, Moment, Purpose)>,
    polled_at: Moment,
    is_leaving: bool,
    is_dead: bool,
}

struct Model {
    environment: Environment<Content>,
    replicas: Vec<Replica>,
    next_id: u64,
    /// The last owner of every range, and how often it has changed.
    owners: BTreeMap<u32, usize>,
    moves: usize,
    violations: Vec<String>,
}

impl Purpose {
    fn kind(&self) -> &'static str {
        match self {
            Self::Own(_) => "own",
            Self::Poll => "poll",
            Self::Expiration(..) => "expiration",
            Self::Probe(_) => "probe",
            Self::Table(_) => "table",
        }
    }
}

impl Model {
    fn new(seed: u64, faults: Faults, replicas: usize) -> Self {
        let mut model = Self {
            environment: Environment::new(seed, faults),
            replicas: Vec::new(),
            next_id: 0,
            owners: BTreeMap::new(),
            moves: 0,
            violations: Vec::new(),
        };
        for _ in 0..replicas {
            model.start();
        }
        model.environment.schedule(Duration::from_secs(5), Event::Fault);
        model
    }

    fn start(&mut self) {
        let process = self.environment.add_process();
        let ranges = Ranges::new(ShardField::Uid, RANGES);
        self.replicas.push(Replica {
            membership: Membership::new(format!("replica-{process}"), Times::DEFAULT, ranges),
            pending: BTreeMap::new(),
            polled_at: Moment::ZERO,
            is_leaving: false,
            is_dead: false,
        });
        self.environment.schedule(Duration::ZERO, Event::Tick { process });
    }

    fn held(&self, process: usize) -> BTreeSet<u32> {
        let replica = &self.replicas[process];
        let held = replica.membership.held(self.environment.local(process));
        held.filter(|_| !replica.is_dead).map(|(held, _)| held).unwrap_or_default()
    }

    /// Runs until a time; everything is checked after every event.
    fn run_until(&mut self, end: Real, has_faults: bool) {
        while self.environment.now < end {
            match self.environment.next() {
                Event::Tick { process } => self.tick(process),
                Event::Reply { process, id, answer } => self.reply(process, id, answer),
                Event::News { process, name, content, version } => {
                    self.hear(process, &name, content, version);
                }
                Event::Fault if has_faults => self.inject_fault(),
                Event::Fault => {}
                Event::Arrival { .. } => unreachable!("requests are the server's"),
            }
            self.check();
        }
    }

    fn check(&mut self) {
        let mut owners = BTreeMap::new();
        for process in 0..self.replicas.len() {
            for range in self.held(process) {
                if let Some(other) = owners.insert(range, process) {
                    let now = self.environment.now;
                    let both = format!("{other} and {process} own {range} at {now:?}");
                    self.violations.push(both);
                }
            }
        }
        for (range, owner) in owners {
            let before = self.owners.insert(range, owner);
            self.moves += usize::from(before.is_some_and(|before| before != owner));
        }
    }

    fn tick(&mut self, process: usize) {
        if self.replicas[process].is_dead {
            return;
        }
        let wait = Duration::from_millis(self.environment.rng.u64(10..500));
        self.environment.schedule(wait, Event::Tick { process });
        let now = self.environment.local(process);
        self.give_up_waiting(process, now);
        let replica = &mut self.replicas[process];
        replica.membership.review(now);
        // Work on a range ends eventually.
        for range in replica.membership.draining().clone() {
            if self.environment.rng.u32(0..10) < 3 {
                replica.membership.drained(range);
            }
        }
        if replica.is_leaving && !replica.pending.contains_key("own") {
            replica.membership.begin_to_leave(now);
            let is_idle = self.environment.rng.u32(0..10) < 3;
            match replica.membership.leave(WALL).filter(|_| is_idle) {
                None if is_idle => replica.is_dead = true,
                None => {}
                Some(step) => self.pursue(process, step, now),
            }
            return;
        }
        self.work(process, now);
    }

    /// Sends all pending requests.
    fn work(&mut self, process: usize, now: Moment) {
        let replica = &mut self.replicas[process];
        if !replica.pending.contains_key("own") {
            let step = replica.membership.own().step(now, WALL);
            self.pursue(process, step, now);
        }
        let replica = &mut self.replicas[process];
        if !replica.pending.contains_key("table") {
            match replica.membership.table_step(now) {
                TableStep::Read => {
                    self.send(process, Purpose::Table(None), Request::Get(TABLE.into()), now);
                }
                TableStep::Write(write) => {
                    let content = Content::Table(write.table.clone());
                    let precondition = write.precondition.clone();
                    let request = Request::Put { name: TABLE.into(), content, precondition };
                    self.send(process, Purpose::Table(Some(write)), request, now);
                }
                TableStep::Rest => {}
            }
        }
        let replica = &mut self.replicas[process];
        let expiration = replica.membership.expirations(now, WALL).into_iter().next();
        if let Some(expiration) = expiration.filter(|_| !replica.pending.contains_key("expiration"))
        {
            let content = Content::Lease(expiration.write.record.clone());
            let precondition = expiration.write.precondition.clone();
            let name = expiration.identity.clone();
            let purpose = Purpose::Expiration(expiration.identity, expiration.write);
            self.send(process, purpose, Request::Put { name, content, precondition }, now);
        }
        let replica = &mut self.replicas[process];
        let unknown = replica.membership.unknown_owners().first().map(|it| (*it).to_owned());
        if let Some(unknown) = unknown.filter(|_| !replica.pending.contains_key("probe")) {
            self.send(process, Purpose::Probe(unknown.clone()), Request::Get(unknown), now);
        }
        let replica = &mut self.replicas[process];
        let is_due = now >= replica.polled_at + Times::DEFAULT.retry_period;
        if is_due && !replica.pending.contains_key("poll") {
            replica.polled_at = now;
            self.send(process, Purpose::Poll, Request::List, now);
        }
    }

    /// Executes a step about the replica's own Lease.
    fn pursue(&mut self, process: usize, step: Step, now: Moment) {
        let name = self.replicas[process].membership.own().identity().to_owned();
        match step {
            Step::Read => self.send(process, Purpose::Own(None), Request::Get(name), now),
            Step::Write(write) => {
                let content = Content::Lease(write.record.clone());
                let precondition = write.precondition.clone();
                let request = Request::Put { name, content, precondition };
                self.send(process, Purpose::Own(Some(write)), request, now);
            }
            Step::Wait(_) => {}
        }
    }

    fn send(&mut self, process: usize, purpose: Purpose, request: Request<Content>, now: Moment) {
        self.next_id += 1;
        let pending = &mut self.replicas[process].pending;
        pending.insert(purpose.kind(), (self.next_id, now, purpose));
        self.environment.send(process, self.next_id, &request);
    }

    fn give_up_waiting(&mut self, process: usize, now: Moment) {
        let replica = &mut self.replicas[process];
        let is_overdue = |sent_at: &Moment| now >= sent_at.saturating_add(PATIENCE);
        let pending = std::mem::take(&mut replica.pending);
        for (kind, (id, sent_at, purpose)) in pending {
            if !is_overdue(&sent_at) {
                replica.pending.insert(kind, (id, sent_at, purpose));
                continue;
            }
            match purpose {
                Purpose::Own(_) => replica.membership.own().fail(false, now),
                Purpose::Table(_) => replica.membership.table_failed(false, now),
                Purpose::Poll | Purpose::Expiration(..) | Purpose::Probe(_) => {}
            }
        }
    }

    fn hear(&mut self, process: usize, name: &str, content: Content, version: String) {
        let now = self.environment.local(process);
        let membership = &mut self.replicas[process].membership;
        match content {
            Content::Table(table) => membership.observe_table(Some((table, version)), now),
            Content::Lease(record) if name == membership.own().identity() => {
                membership.own().observe(Some((record, version)), now);
            }
            Content::Lease(record) => {
                membership.observe_member(name, Some((record, version)), now);
            }
        }
    }

    fn reply(&mut self, process: usize, id: u64, answer: Answer<Content>) {
        let now = self.environment.local(process);
        let replica = &mut self.replicas[process];
        let is_it = |(_, (it, ..)): &(&&str, &(u64, Moment, Purpose))| *it == id;
        // Late responses are ignored.
        let Some(kind) = replica.pending.iter().find(is_it).map(|(kind, _)| *kind) else { return };
        let Some((_, sent_at, purpose)) = replica.pending.remove(kind) else { return };
        let membership = &mut replica.membership;
        match (purpose, answer) {
            (Purpose::Own(None), Answer::Found(found)) => {
                let found = found.map(|(content, version)| (lease(content), version));
                membership.own().observe(found, now);
            }
            (Purpose::Own(Some(write)), Answer::Written(version)) => {
                membership.own().succeed(&write, version, sent_at, now);
            }
            (Purpose::Own(_), Answer::Conflict) => membership.own().fail(true, now),
            (Purpose::Table(None), Answer::Found(found)) => {
                let found = found.map(|(content, version)| (table(content), version));
                membership.observe_table(found, now);
            }
            (Purpose::Table(Some(write)), Answer::Written(version)) => {
                membership.table_written(write, version, now);
            }
            (Purpose::Table(_), Answer::Conflict) => membership.table_failed(true, now),
            (Purpose::Expiration(identity, write), Answer::Written(version)) => {
                membership.observe_member(&identity, Some((write.record, version)), now);
            }
            (Purpose::Expiration(..), Answer::Conflict) => {}
            (Purpose::Probe(identity), Answer::Found(None)) => {
                membership.observe_missing(&identity, sent_at);
            }
            (Purpose::Probe(identity), Answer::Found(Some((content, version)))) => {
                self.hear(process, &identity, content, version);
            }
            (Purpose::Poll, Answer::Listed(items)) => {
                for (name, content, version) in items {
                    self.hear(process, &name, content, version);
                }
            }
            (purpose, answer) => unreachable!("{answer:?} does not fit {purpose:?}"),
        }
    }

    fn inject_fault(&mut self) {
        let wait = Duration::from_millis(self.environment.rng.u64(500..20_000));
        self.environment.schedule(wait, Event::Fault);
        let process = self.environment.rng.usize(0..self.replicas.len());
        let duration = Duration::from_millis(self.environment.rng.u64(10..70_000));
        let alive = self.replicas.iter().filter(|it| !it.is_dead).count();
        let replica = &mut self.replicas[process];
        if replica.is_dead {
            return;
        }
        match self.environment.rng.u32(0..12) {
            0..=4 => self.environment.freeze(process, duration),
            5..=7 => self.environment.cut_off(process, duration),
            8 => {
                replica.is_dead = true;
                self.start();
            }
            9 | 10 => {
                replica.is_leaving = true;
                self.start();
            }
            _ if alive < 6 => self.start(),
            _ => {}
        }
    }

    /// How many ranges have an owner now.
    fn owned(&self) -> usize {
        (0..self.replicas.len()).map(|process| self.held(process).len()).sum()
    }
}

fn lease(content: Content) -> LeaseRecord {
    let Content::Lease(record) = content else { panic!("it is not a Lease") };
    record
}

fn table(content: Content) -> Table {
    let Content::Table(table) = content else { panic!("it is not the table") };
    table
}

#[test]
fn no_range_ever_has_two_owners_under_any_fault() {
    let mut moves = 0;
    for seed in seeds(30) {
        let mut model = Model::new(seed, Faults::MANY, 3);
        model.run_until(Duration::from_secs(600), true);
        assert!(model.violations.is_empty(), "MODEL_SEED={seed}: {:?}", model.violations);
        moves += model.moves;
    }
    // Otherwise nothing was proved.
    assert!(moves > seeds(30).count() * 10, "{moves} moves");
}

#[test]
fn every_range_has_an_owner_within_the_bound_after_a_replica_died() {
    // The slowest clock counts the duration; then the Lease is replaced, and the table written.
    let bound = Duration::from_secs(15) * 100 / 82 + Duration::from_secs(2) * 4;
    for seed in seeds(30) {
        let mut model = Model::new(seed, Faults::MANY, 3);
        model.run_until(Duration::from_secs(120), true);
        model.environment.stop_faults();
        model.start();
        model.start();
        model.run_until(Duration::from_secs(240), false);
        assert_eq!(model.owned(), RANGES as usize, "MODEL_SEED={seed}: before");
        let died = (0..model.replicas.len()).find(|process| !model.held(*process).is_empty());
        model.replicas[died.unwrap()].is_dead = true;
        let end = model.environment.now + bound;
        model.run_until(end, false);
        assert_eq!(model.owned(), RANGES as usize, "MODEL_SEED={seed}: after {bound:?}");
        assert!(model.violations.is_empty(), "MODEL_SEED={seed}: {:?}", model.violations);
    }
}

#[test]
fn replicas_without_faults_share_the_ranges_evenly() {
    for seed in seeds(20) {
        let mut model = Model::new(seed, Faults::NONE, 4);
        model.run_until(Duration::from_secs(60), false);
        let shares: Vec<usize> = (0..4).map(|process| model.held(process).len()).collect();
        assert_eq!(shares, [2, 2, 2, 2], "MODEL_SEED={seed}");
    }
}

#[test]
fn the_ranges_of_a_leaving_replica_are_taken_at_the_next_read_of_its_lease() {
    for seed in seeds(20) {
        let mut model = Model::new(seed, Faults::NONE, 3);
        model.run_until(Duration::from_secs(60), false);
        model.replicas[0].is_leaving = true;
        model.run_until(Duration::from_secs(70), false);
        assert_eq!(model.held(0), BTreeSet::new(), "MODEL_SEED={seed}");
        assert_eq!(model.owned(), RANGES as usize, "MODEL_SEED={seed}");
        assert!(model.violations.is_empty(), "MODEL_SEED={seed}: {:?}", model.violations);
    }
}

/// The model is useful only if it detects violations.
#[test]
fn clocks_beyond_the_bound_are_detected() {
    let faults = Faults { drift: 70, ..Faults::MANY };
    let is_violated = |seed: u64| {
        let mut model = Model::new(seed, faults, 3);
        model.run_until(Duration::from_secs(600), true);
        !model.violations.is_empty()
    };
    assert!((0..100).any(is_violated));
}
