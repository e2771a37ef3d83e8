//! The history of what clients of a store have observed, and whether it is consistent.
//!
//! Versions order all writes, so a history is linearizable if that order agrees with real time and
//! every read returns a state that existed during the read.

use std::collections::BTreeMap;
use std::ops::Bound;

/// The value of an object; `None` once it is deleted.
pub(super) type Content = Option<String>;

/// The outcome of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    /// The client never received a response.
    Unknown,
    /// The server rejected a write.
    NotStored,
    /// The write succeeded at this version.
    Written(u64, Content),
    /// The read returned this version and value.
    Found(u64, String),
    /// There is no such object.
    Absent,
    /// There is such an object.
    Present,
}

/// One request about one object.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) key: String,
    pub(super) invoked: u64,
    pub(super) answered: u64,
    /// The written value, if it is a write.
    pub(super) writes: Option<Content>,
    pub(super) outcome: Outcome,
}

/// The events that one watcher has received since it started at a version.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    pub(super) start: u64,
    pub(super) events: Vec<(u64, String, Content)>,
}

/// Everything that clients have observed.
#[derive(Debug, Default)]
pub(super) struct History {
    now: u64,
    pub(super) requests: Vec<Request>,
    pub(super) watches: Vec<Watched>,
    /// Every version that a client has observed, with its object.
    pub(super) observed: BTreeMap<u64, (String, Content)>,
    /// The newest version that a client has observed.
    pub(super) newest: u64,
}

impl History {
    /// Advances the logical clock.
    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// Records the start of a request; returns its number.
    pub(super) fn invoke(&mut self, key: &str, writes: Option<Content>) -> usize {
        let (key, invoked) = (key.to_owned(), self.tick());
        let outcome = Outcome::Unknown;
        self.requests.push(Request { key, invoked, answered: u64::MAX, writes, outcome });
        self.requests.len() - 1
    }

    /// Records the response to a request.
    pub(super) fn answer(&mut self, number: usize, outcome: Outcome) {
        let now = self.tick();
        let key = self.requests[number].key.clone();
        match &outcome {
            Outcome::Written(version, content) => self.record(*version, &key, content.clone()),
            Outcome::Found(version, value) => self.record(*version, &key, Some(value.clone())),
            _ => {}
        }
        let request = &mut self.requests[number];
        (request.answered, request.outcome) = (now, outcome);
    }

    /// Records that a client has observed this state of an object at this version.
    pub(super) fn record(&mut self, version: u64, key: &str, content: Content) {
        self.newest = self.newest.max(version);
        let state = (key.to_owned(), content);
        let known = self.observed.entry(version).or_insert_with(|| state.clone());
        assert_eq!(*known, state, "version {version} is used twice");
    }

    /// Checks the state of a restarted server: nothing that was observed may be missing.
    pub(super) fn check_restart(&self, version: u64, state: &BTreeMap<String, (u64, String)>) {
        assert!(version >= self.newest, "{version} is older than {}, which was told", self.newest);
        for (key, (version, value)) in state {
            if let Some(observed) = self.observed.get(version) {
                assert_eq!(*observed, (key.clone(), Some(value.clone())), "{version} was told");
            }
        }
        let mut last = BTreeMap::new();
        for (version, (key, content)) in &self.observed {
            last.insert(key, (version, content));
        }
        for (key, (observed, content)) in last {
            let found = state.get(key);
            let is_newer = found.is_some_and(|(version, _)| version > observed);
            let is_same = found.map(|(_, value)| value) == content.as_ref();
            let was_deleted = found.is_none() && self.may_have_written(key, &None, u64::MAX);
            assert!(is_newer || is_same || was_deleted, "{key} at {observed} is lost: {found:?}");
        }
    }

    /// Whether an unobserved write of this value may have taken effect before a moment.
    fn may_have_written(&self, key: &str, content: &Content, before: u64) -> bool {
        self.requests.iter().any(|request| {
            let is_kind =
                request.writes.as_ref().is_some_and(|it| it.is_some() == content.is_some());
            let is_open = matches!(request.outcome, Outcome::Unknown | Outcome::NotStored);
            request.key == key && is_kind && is_open && request.invoked < before
        })
    }

    /// Checks the whole history.
    pub(super) fn check(&self) {
        for watched in &self.watches {
            self.check_watch(watched);
        }
        let mut keys: Vec<&str> = self.requests.iter().map(|request| &*request.key).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            self.check_order(key);
            self.check_presence(key);
        }
    }

    /// Checks that versions increase and that none between the first and the last one is missing.
    fn check_watch(&self, watched: &Watched) {
        let mut last = watched.start;
        let mut present: BTreeMap<&str, bool> = BTreeMap::new();
        for (version, key, content) in &watched.events {
            assert!(*version > last, "{version} after {last}");
            last = *version;
            let was_present = present.insert(key, content.is_some());
            assert!(content.is_some() || was_present != Some(false), "{key} is deleted twice");
        }
        let seen: Vec<u64> = watched.events.iter().map(|(version, ..)| *version).collect();
        let span = (Bound::Excluded(watched.start), Bound::Included(last));
        let observed: Vec<u64> = self.observed.range(span).map(|(version, _)| *version).collect();
        assert_eq!(seen, observed, "a watch from {} has gaps or phantoms", watched.start);
    }

    /// Checks that the order of versions agrees with real time.
    fn check_order(&self, key: &str) {
        let mut steps: Vec<(u64, u8, &Request)> = Vec::new();
        for request in self.requests.iter().filter(|request| request.key == key) {
            match &request.outcome {
                Outcome::Written(version, _) => steps.push((*version, 0, request)),
                Outcome::Found(version, _) => steps.push((*version, 1, request)),
                _ => {}
            }
        }
        steps.sort_by_key(|(version, is_read, request)| (*version, *is_read, request.invoked));
        let mut latest = 0;
        for (_, _, request) in steps {
            assert!(request.answered > latest, "{request:?} was answered too early");
            latest = latest.max(request.invoked);
        }
    }

    /// Checks that answers about the presence of an object are true at some moment of the request.
    fn check_presence(&self, key: &str) {
        let requests = || self.requests.iter().filter(|request| request.key == key);
        for request in requests() {
            let wanted: Content = match request.outcome {
                Outcome::Absent => None,
                Outcome::Present => Some(String::new()),
                _ => continue,
            };
            let fits = |content: &Content| content.is_some() == wanted.is_some();
            // The newest write that was answered before the request started.
            let before = requests()
                .filter(|write| write.answered < request.invoked)
                .filter_map(|write| match &write.outcome {
                    Outcome::Written(version, content) => Some((*version, content.clone())),
                    _ => None,
                })
                .max_by_key(|(version, _)| *version)
                .unwrap_or((0, None));
            let is_observed = |(version, (other, content)): (&u64, &(String, Content))| {
                *version > before.0 && other == key && fits(content)
            };
            let may = fits(&before.1)
                || self.observed.iter().any(is_observed)
                || self.may_have_written(key, &wanted, request.answered);
            assert!(may, "{request:?} contradicts {before:?}");
        }
    }
}
