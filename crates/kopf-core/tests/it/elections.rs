//! Elections under every fault of [`unreliable`](crate::unreliable): never two leaders, and always
//! a new one soon.

use std::collections::BTreeMap;
use std::time::Duration;

use kopf_core::election::{Election, Step, Times, Write};
use kopf_core::queue::Moment;
use kopf_model::Timestamp;
use kopf_model::lease::LeaseRecord;

use crate::unreliable::{Answer, Environment, Event, Faults, Real, Request, seeds};

const WALL: Timestamp = Timestamp::UNIX_EPOCH;
const LEASE: &str = "lease";
/// The timeout of a request.
const PATIENCE: Duration = Duration::from_secs(5);

struct Candidate {
    election: Election,
    /// The pending request: its number, its time, and the write if it is one.
    pending: Option<(u64, Moment, Option<Write>)>,
    polled_at: Moment,
    is_leaving: bool,
    is_dead: bool,
}

struct Model {
    environment: Environment<LeaseRecord>,
    candidates: Vec<Candidate>,
    next_id: u64,
    /// The leader of each term.
    leaders: BTreeMap<u64, usize>,
    violations: Vec<String>,
}

impl Model {
    fn new(seed: u64, faults: Faults, candidates: usize) -> Self {
        let environment = Environment::new(seed, faults);
        let (leaders, violations) = (BTreeMap::new(), Vec::new());
        let mut model =
            Self { environment, candidates: Vec::new(), next_id: 0, leaders, violations };
        for _ in 0..candidates {
            model.start();
        }
        model.environment.schedule(Duration::from_secs(5), Event::Fault);
        model
    }

    fn start(&mut self) {
        let process = self.environment.add_process();
        self.candidates.push(Candidate {
            election: Election::new(format!("process-{process}"), Times::DEFAULT),
            pending: None,
            polled_at: Moment::ZERO,
            is_leaving: false,
            is_dead: false,
        });
        self.environment.schedule(Duration::ZERO, Event::Tick { process });
    }

    fn leader(&self) -> Option<usize> {
        let leads = |process: &usize| {
            let candidate = &self.candidates[*process];
            let now = self.environment.local(*process);
            !candidate.is_dead && candidate.election.term(now).is_some()
        };
        (0..self.candidates.len()).find(leads)
    }

    /// Runs until a time; everything is checked after every event.
    fn run_until(&mut self, end: Real) {
        while self.environment.now < end {
            let event = self.environment.next();
            self.take(event);
            self.check();
        }
    }

    fn take(&mut self, event: Event<LeaseRecord>) {
        match event {
            Event::Tick { process } => self.tick(process),
            Event::Reply { process, id, answer } => self.reply(process, id, answer),
            Event::News { process, content, version, .. } => {
                let now = self.environment.local(process);
                self.candidates[process].election.observe(Some((content, version)), now);
            }
            Event::Fault => self.inject_fault(),
            Event::Arrival { .. } => unreachable!("requests are the server's"),
        }
    }

    fn check(&mut self) {
        let mut leaders = Vec::new();
        for (process, candidate) in self.candidates.iter().enumerate() {
            let now = self.environment.local(process);
            // Even if it is frozen: it might wake up and write at this very moment.
            let Some(term) = candidate.election.term(now).filter(|_| !candidate.is_dead) else {
                continue;
            };
            leaders.push(process);
            let known = *self.leaders.entry(term.number).or_insert(process);
            let last = self.leaders.last_key_value().map(|(number, _)| *number);
            if known != process || last > Some(term.number) {
                self.violations.push(format!("term {} is not new", term.number));
            }
        }
        if leaders.len() > 1 {
            self.violations.push(format!("{leaders:?} lead at {:?}", self.environment.now));
        }
    }

    fn tick(&mut self, process: usize) {
        if self.candidates[process].is_dead {
            return;
        }
        let wait = Duration::from_millis(self.environment.rng.u64(10..500));
        self.environment.schedule(wait, Event::Tick { process });
        let now = self.environment.local(process);
        let candidate = &mut self.candidates[process];
        match &candidate.pending {
            Some((_, sent_at, _)) if now < *sent_at + PATIENCE => return,
            Some(_) => {
                candidate.pending = None;
                candidate.election.fail(false, now);
            }
            None => {}
        }
        let step = match candidate.is_leaving {
            true => candidate.election.leave(WALL),
            false => Some(candidate.election.step(now, WALL)),
        };
        let (request, write) = match step {
            None => {
                candidate.is_dead = true;
                return;
            }
            Some(Step::Write(write)) => {
                let (content, precondition) = (write.record.clone(), write.precondition.clone());
                (Request::Put { name: LEASE.into(), content, precondition }, Some(write))
            }
            Some(Step::Read) => (Request::Get(LEASE.into()), None),
            Some(Step::Wait(_)) if now >= candidate.polled_at + Times::DEFAULT.retry_period => {
                (Request::Get(LEASE.into()), None)
            }
            Some(Step::Wait(_)) => return,
        };
        candidate.polled_at = now;
        self.next_id += 1;
        candidate.pending = Some((self.next_id, now, write));
        self.environment.send(process, self.next_id, &request);
    }

    fn reply(&mut self, process: usize, id: u64, answer: Answer<LeaseRecord>) {
        let now = self.environment.local(process);
        let candidate = &mut self.candidates[process];
        // Late responses are ignored.
        let Some((_, sent_at, write)) = candidate.pending.take_if(|(it, ..)| *it == id) else {
            return;
        };
        match (answer, write) {
            (Answer::Found(found), _) => candidate.election.observe(found, now),
            (Answer::Written(version), Some(write)) => {
                candidate.election.succeed(&write, version, sent_at, now);
            }
            (Answer::Conflict, _) => candidate.election.fail(true, now),
            _ => unreachable!("answers fit their requests"),
        }
    }

    fn inject_fault(&mut self) {
        let wait = Duration::from_millis(self.environment.rng.u64(500..20_000));
        self.environment.schedule(wait, Event::Fault);
        let process = self.environment.rng.usize(0..self.candidates.len());
        let duration = Duration::from_millis(self.environment.rng.u64(10..70_000));
        let candidate = &mut self.candidates[process];
        if candidate.is_dead {
            return;
        }
        match self.environment.rng.u32(0..10) {
            0..=4 => self.environment.freeze(process, duration),
            5..=7 => self.environment.cut_off(process, duration),
            8 => {
                candidate.is_dead = true;
                self.start();
            }
            _ => {
                candidate.is_leaving = true;
                self.start();
            }
        }
    }
}

#[test]
fn there_are_never_two_leaders_under_any_fault() {
    let mut terms = 0;
    for seed in seeds(60) {
        let mut model = Model::new(seed, Faults::MANY, 4);
        model.run_until(Duration::from_secs(600));
        assert!(model.violations.is_empty(), "MODEL_SEED={seed}: {:?}", model.violations);
        terms += model.leaders.len();
    }
    // Otherwise nothing was proved.
    assert!(terms > seeds(60).count() * 3, "{terms} terms");
}

#[test]
fn a_new_leader_is_elected_within_the_bound_after_the_leader_died() {
    // The slowest clock counts the duration; then the Lease is read and written.
    let bound = Duration::from_secs(15) * 100 / 82 + Duration::from_secs(2) * 2;
    for seed in seeds(60) {
        let mut model = Model::new(seed, Faults::MANY, 3);
        model.run_until(Duration::from_secs(120));
        model.environment.stop_faults();
        // Late messages have arrived by then.
        run_without_faults(&mut model, Duration::from_secs(200));
        for _ in 0..3 {
            model.start();
        }
        let start = model.environment.now;
        run_without_faults(&mut model, start + Duration::from_secs(10));
        let leader = model.leader().unwrap_or_else(|| panic!("MODEL_SEED={seed}: nobody leads"));
        model.candidates[leader].is_dead = true;
        let died = model.environment.now;
        run_without_faults(&mut model, died + bound);
        assert!(model.leader().is_some(), "MODEL_SEED={seed}: nobody leads after {bound:?}");
        assert!(model.violations.is_empty(), "MODEL_SEED={seed}: {:?}", model.violations);
    }
}

#[test]
fn a_released_lease_is_taken_at_the_next_read() {
    for seed in seeds(100) {
        let mut model = Model::new(seed, Faults::NONE, 3);
        run_without_faults(&mut model, Duration::from_secs(20));
        let leader = model.leader().unwrap_or_else(|| panic!("MODEL_SEED={seed}: nobody leads"));
        model.candidates[leader].is_leaving = true;
        let end = model.environment.now + Duration::from_secs(5);
        run_without_faults(&mut model, end);
        let next = model.leader();
        assert!(next.is_some_and(|it| it != leader), "MODEL_SEED={seed}: {next:?}");
        assert!(model.violations.is_empty(), "MODEL_SEED={seed}: {:?}", model.violations);
    }
}

/// The model is useful only if it detects violations.
#[test]
fn clocks_beyond_the_bound_are_detected() {
    let faults = Faults { drift: 60, ..Faults::MANY };
    let is_violated = |seed: u64| {
        let mut model = Model::new(seed, faults, 4);
        model.run_until(Duration::from_secs(600));
        !model.violations.is_empty()
    };
    assert!((0..100).any(is_violated));
}

fn run_without_faults(model: &mut Model, end: Real) {
    while model.environment.now < end {
        match model.environment.next() {
            Event::Fault => {}
            event => model.take(event),
        }
        model.check();
    }
}
