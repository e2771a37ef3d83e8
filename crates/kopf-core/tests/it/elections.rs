//! Elections under every fault of [`unreliable`](crate::unreliable): never two leaders, and always
//! another one soon.

use std::collections::BTreeMap;
use std::time::Duration;

use kopf_core::election::{Election, Step, Times, Write};
use kopf_core::queue::Moment;
use kopf_model::Timestamp;
use kopf_model::lease::LeaseRecord;

use crate::unreliable::{Answer, Event, Real, Request, Surroundings, Weather, seeds};

const WALL: Timestamp = Timestamp::UNIX_EPOCH;
const LEASE: &str = "lease";
/// How long a request is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

struct Candidate {
    election: Election,
    /// What was asked: its number, when, and the write if it was one.
    pending: Option<(u64, Moment, Option<Write>)>,
    polled_at: Moment,
    is_leaving: bool,
    is_dead: bool,
}

struct Model {
    surroundings: Surroundings<LeaseRecord>,
    candidates: Vec<Candidate>,
    next_id: u64,
    /// Who led in which term.
    leaders: BTreeMap<u64, usize>,
    violations: Vec<String>,
}

impl Model {
    fn new(seed: u64, weather: Weather, candidates: usize) -> Self {
        let surroundings = Surroundings::new(seed, weather);
        let (leaders, violations) = (BTreeMap::new(), Vec::new());
        let mut model =
            Self { surroundings, candidates: Vec::new(), next_id: 0, leaders, violations };
        for _ in 0..candidates {
            model.start();
        }
        model.surroundings.schedule(Duration::from_secs(5), Event::Mishap);
        model
    }

    fn start(&mut self) {
        let process = self.surroundings.add_process();
        self.candidates.push(Candidate {
            election: Election::new(format!("process-{process}"), Times::DEFAULT),
            pending: None,
            polled_at: Moment::ZERO,
            is_leaving: false,
            is_dead: false,
        });
        self.surroundings.schedule(Duration::ZERO, Event::Tick { process });
    }

    fn leader(&self) -> Option<usize> {
        let leads = |process: &usize| {
            let candidate = &self.candidates[*process];
            let now = self.surroundings.local(*process);
            !candidate.is_dead && candidate.election.term(now).is_some()
        };
        (0..self.candidates.len()).find(leads)
    }

    /// Runs until a moment; everything is checked after every event.
    fn run_until(&mut self, end: Real) {
        while self.surroundings.now < end {
            let event = self.surroundings.next();
            self.take(event);
            self.check();
        }
    }

    fn take(&mut self, event: Event<LeaseRecord>) {
        match event {
            Event::Tick { process } => self.tick(process),
            Event::Reply { process, id, answer } => self.reply(process, id, answer),
            Event::News { process, content, version, .. } => {
                let now = self.surroundings.local(process);
                self.candidates[process].election.observe(Some((content, version)), now);
            }
            Event::Mishap => self.mishap(),
            Event::Arrival { .. } => unreachable!("requests are the server's"),
        }
    }

    fn check(&mut self) {
        let mut leaders = Vec::new();
        for (process, candidate) in self.candidates.iter().enumerate() {
            let now = self.surroundings.local(process);
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
            self.violations.push(format!("{leaders:?} lead at {:?}", self.surroundings.now));
        }
    }

    fn tick(&mut self, process: usize) {
        if self.candidates[process].is_dead {
            return;
        }
        let wait = Duration::from_millis(self.surroundings.rng.u64(10..500));
        self.surroundings.schedule(wait, Event::Tick { process });
        let now = self.surroundings.local(process);
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
        self.surroundings.send(process, self.next_id, &request);
    }

    fn reply(&mut self, process: usize, id: u64, answer: Answer<LeaseRecord>) {
        let now = self.surroundings.local(process);
        let candidate = &mut self.candidates[process];
        // Answers that nobody waits for any more are not heard.
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

    fn mishap(&mut self) {
        let wait = Duration::from_millis(self.surroundings.rng.u64(500..20_000));
        self.surroundings.schedule(wait, Event::Mishap);
        let process = self.surroundings.rng.usize(0..self.candidates.len());
        let duration = Duration::from_millis(self.surroundings.rng.u64(10..70_000));
        let candidate = &mut self.candidates[process];
        if candidate.is_dead {
            return;
        }
        match self.surroundings.rng.u32(0..10) {
            0..=4 => self.surroundings.freeze(process, duration),
            5..=7 => self.surroundings.cut_off(process, duration),
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
fn two_never_lead_at_once_whatever_the_network_and_the_clocks_do() {
    let mut terms = 0;
    for seed in seeds(60) {
        let mut model = Model::new(seed, Weather::STORM, 4);
        model.run_until(Duration::from_secs(600));
        assert!(model.violations.is_empty(), "MODEL_SEED={seed}: {:?}", model.violations);
        terms += model.leaders.len();
    }
    // Otherwise nothing was proved.
    assert!(terms > seeds(60).count() * 3, "{terms} terms");
}

#[test]
fn another_one_leads_within_the_bound_after_the_leader_died() {
    // The slowest clock counts the duration; then the Lease is read and written.
    let bound = Duration::from_secs(15) * 100 / 82 + Duration::from_secs(2) * 2;
    for seed in seeds(60) {
        let mut model = Model::new(seed, Weather::STORM, 3);
        model.run_until(Duration::from_secs(120));
        model.surroundings.calm_down();
        // What was late has arrived by then.
        run_without_mishaps(&mut model, Duration::from_secs(200));
        for _ in 0..3 {
            model.start();
        }
        let start = model.surroundings.now;
        run_without_mishaps(&mut model, start + Duration::from_secs(10));
        let leader = model.leader().unwrap_or_else(|| panic!("MODEL_SEED={seed}: nobody leads"));
        model.candidates[leader].is_dead = true;
        let died = model.surroundings.now;
        run_without_mishaps(&mut model, died + bound);
        assert!(model.leader().is_some(), "MODEL_SEED={seed}: nobody leads after {bound:?}");
        assert!(model.violations.is_empty(), "MODEL_SEED={seed}: {:?}", model.violations);
    }
}

#[test]
fn a_released_lease_is_taken_with_the_next_look_at_it() {
    for seed in seeds(100) {
        let mut model = Model::new(seed, Weather::CALM, 3);
        run_without_mishaps(&mut model, Duration::from_secs(20));
        let leader = model.leader().unwrap_or_else(|| panic!("MODEL_SEED={seed}: nobody leads"));
        model.candidates[leader].is_leaving = true;
        let end = model.surroundings.now + Duration::from_secs(5);
        run_without_mishaps(&mut model, end);
        let next = model.leader();
        assert!(next.is_some_and(|it| it != leader), "MODEL_SEED={seed}: {next:?}");
        assert!(model.violations.is_empty(), "MODEL_SEED={seed}: {:?}", model.violations);
    }
}

/// The model is worth something only if it finds what is wrong.
#[test]
fn clocks_beyond_the_bound_are_found_out() {
    let weather = Weather { drift: 60, ..Weather::STORM };
    let is_violated = |seed: u64| {
        let mut model = Model::new(seed, weather, 4);
        model.run_until(Duration::from_secs(600));
        !model.violations.is_empty()
    };
    assert!((0..100).any(is_violated));
}

fn run_without_mishaps(model: &mut Model, end: Real) {
    while model.surroundings.now < end {
        match model.surroundings.next() {
            Event::Mishap => {}
            event => model.take(event),
        }
        model.check();
    }
}
